#!/usr/bin/env python3
"""mutate_patterns.py HEDDLE FOLDER [--runs N] [--seed S] [--keep DIR]: patterns of a folder, changed at random, through `heddle check` and
`heddle explain`. Each must end with an exit code, which one that takes 60 s of processor time, hundreds of times what is usual, does not,
within 2 GB of memory, and print no control character. What does not is kept, and the exit code is 1."""
import argparse
import glob
import os
import random
import re
import resource
import subprocess
import sys

SECONDS, GIGABYTES = 60, 2
NUMBERS = ["0", "1", "2", "-1", "7", "31", "63", "64", "127", "1023", "65535", "65536", "1048576", "1073741824", "2147483647", "4294967296",
           "-2147483648"]
TOKEN = re.compile(r"%\w+|\d+|attn\.\w+|[\w.]+|\s+|.", re.S)


def swap_number(tokens, dice):
    places = [i for i, token in enumerate(tokens) if token.isdigit()]
    if places:
        tokens[dice.choice(places)] = dice.choice(NUMBERS)


def swap_word(tokens, dice, words):
    places = [i for i, token in enumerate(tokens) if token.startswith(("attn.", "%"))]
    if places:
        place = dice.choice(places)
        tokens[place] = dice.choice([word for word in words if word[0] == tokens[place][0]])


def repeat_line(text, dice):
    lines = text.split("\n")
    place = dice.randrange(len(lines))
    lines[place:place + 1] = [lines[place]] * dice.choice([0, 2, 3])
    return "\n".join(lines)


def change_byte(text, dice):
    if not text:
        return text
    place = dice.randrange(len(text))
    return text[:place] + chr(dice.choice([0, 7, 27, 34, 40, 123, 0x202E, dice.randrange(256)])) + text[place + dice.randrange(2):]


def mutated(text, dice, words):
    for _ in range(dice.choice([1, 1, 2, 3, 5])):
        kind = dice.random()
        if kind < 0.7:
            tokens = TOKEN.findall(text)
            swap_number(tokens, dice) if kind < 0.4 else swap_word(tokens, dice, words)
            text = "".join(tokens)
        else:
            text = repeat_line(text, dice) if kind < 0.9 else change_byte(text, dice)
    return text


def limited():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "ASAN_OPTIONS" not in os.environ:
        resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))


def complaint(command, text):
    """What is wrong with a run, or nothing."""
    run = subprocess.run(command, input=text.encode("utf-8", "surrogatepass"), capture_output=True, preexec_fn=limited)
    if run.returncode in (-24, -9):
        return f"more than {SECONDS} s of processor time"
    if run.returncode not in (0, 1, 2, 3):
        return f"exit code {run.returncode}"
    if b"out of memory" in run.stderr:
        return f"more than {GIGABYTES} GB"
    if re.search(rb"[\x00-\x08\x0b-\x1f\x7f]|\xe2\x80\xae", run.stdout + run.stderr):
        return "a control character"
    if len(run.stderr) > 100000:
        return f"{len(run.stderr)} bytes of message"
    return None


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("heddle")
    options.add_argument("folder")
    options.add_argument("--runs", type=int, default=100)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--keep", default=".")
    given = options.parse_args()
    dice = random.Random(given.seed)
    texts = [open(path, encoding="utf-8", errors="replace").read() for path in sorted(glob.glob(os.path.join(given.folder, "*.mlir")))]
    if not texts:
        sys.exit(f"no patterns in {given.folder}")
    words = sorted({token for text in texts for token in TOKEN.findall(text) if token.startswith(("attn.", "%"))})
    found = valid = 0
    for number in range(given.runs):
        text = mutated(dice.choice(texts), dice, words)
        commands = [[given.heddle, "check", "-"], [given.heddle, "explain", "-", "--seqlen=8192", "--heads=8"]]
        for command in commands:
            wrong = complaint(command, text)
            if wrong:
                found += 1
                path = os.path.join(given.keep, f"found-{given.seed}-{number}-{command[1]}.mlir")
                with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
                    file.write(text)
                print(f"{' '.join(command[1:])}: {wrong}: {path}")
        valid += subprocess.run(commands[0], input=text.encode(), capture_output=True).returncode == 0
    print(f"{given.runs} changed patterns, {valid} of them still patterns, {found} complaints")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
