#!/bin/sh
# cached-compile.sh <checkout> <ccache> <compiler> <argument>...: compiles through ccache so that a second clone of the same
# commit compiles nothing but its precompiled headers. Paths below the checkout are made relative to the working folder, which
# is the build folder of every clone. A precompiled header holds absolute paths and stays with its clone; ccache knows it by
# the checksum beside it, of what went into it.
checkout=$1 ccache=$2
shift 2
[ "${checkout%/}" != "$PWD" ] || exec "$ccache" "$@"

# The way up from here: "../" for each folder below the checkout.
up='' below=${PWD#"$checkout"/}
[ "$below" != "$PWD" ] || exec "$ccache" "$@" # a build folder that lies elsewhere
while [ -n "$below" ]; do
  up=../$up
  case $below in */*) below=${below#*/} ;; *) below='' ;; esac
done

output='' depends='' before=''
count=$#
while [ $count -gt 0 ]; do
  argument=$1
  shift
  case $argument in
    "$PWD"/*) argument=${argument#"$PWD"/} ;;
    "$checkout"/*) argument=$up${argument#"$checkout"/} ;;
    "-I$PWD") argument=-I. ;;
    "-I$PWD"/*) argument=-I${argument#"-I$PWD"/} ;;
    "-I$checkout") argument=-I${up%/} ;;
    "-I$checkout"/*) argument=-I$up${argument#"-I$checkout"/} ;;
  esac
  case $before in -o) output=$argument ;; -MF) depends=$argument ;; esac
  before=$argument
  set -- "$@" "$argument"
  count=$((count - 1))
done

case $output in
  *.pch | *.gch)
    "$@" || exit
    { printf '%s\n' "$@"; sed -e 's/^[^:]*://' -e 's/\\$//' "$depends" | xargs cat; } | cksum >"$output.sum"
    ;;
  *)
    CCACHE_PCH_EXTSUM=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime exec "$ccache" "$@"
    ;;
esac
