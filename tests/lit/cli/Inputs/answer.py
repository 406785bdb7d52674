# answer.py WORD COMMAND...: runs the command on a terminal, types the word when it is asked, and prints what it says.
import os
import pty
import sys

child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
said = b""
answered = False
while True:
    try:
        got = os.read(terminal, 4096)
    except OSError:
        got = b""
    if not got:
        break
    said += got
    if b"[y/N]" in said and not answered:
        os.write(terminal, sys.argv[1].encode() + b"\n")
        answered = True
sys.stdout.write(said.decode().replace("\r\n", "\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
