# exit-code.sh <code> <command>...: fails unless the command exits with the code, and, if that is not 0,
# prints nothing on stdout and something on stderr.
wanted=$1
shift
printed=$("$@" 2>exit-code.err.$$)
got=$?
said=$(cat exit-code.err.$$)
rm -f exit-code.err.$$
if [ "$got" != "$wanted" ]; then echo "exit code $got, expected $wanted: $said" >&2; exit 1; fi
[ "$wanted" != 0 ] || exit 0
if [ -n "$printed" ]; then echo "printed: $printed" >&2; exit 1; fi
[ -n "$said" ] || { echo "said nothing" >&2; exit 1; }
