# shellcheck shell=bash disable=SC2154,SC2034 # variables come from and go to those who source it
# What the install tests share; sourced with $source, $build, $cc, $cxx and $scratch set. An installed tree is $scratch/<component>.

# What is installed finds the NVRTC that came along, not the kept results of tests.
[ -z "${HEDDLE_NVRTC_CACHE:-}" ] || export HEDDLE_NVRTC_LIBRARY=${HEDDLE_NVRTC_BEHIND:-} HEDDLE_NVRTC_CACHE=

fail() { echo "FAIL: $*" >&2; exit 1; }

install_and_move() { # install_and_move <component> <library>: sets $tree, $library and $libdir
  cmake --install "$build" --component "$1" --prefix "$scratch/first" >"$scratch/install.log" || { cat "$scratch/install.log" >&2; fail "component $1"; }
  tree=$scratch/$1
  mv "$scratch/first" "$tree"
  library=$(find "$tree" -name "$2.so")
  [ -n "$library" ] || fail "$2.so is not installed"
  libdir=$(dirname "$library")
  ! grep -rl "$scratch\|$build\|$source" "$libdir/cmake" "$libdir/pkgconfig" || fail "a package file names a folder of this machine"
  readelf -d "$library" | grep -q "SONAME.*\[$2\.so\.[0-9]\+\]" || fail "no soname with a version"
  ! readelf -d "$library" | grep -E 'R(UN)?PATH' | grep "$build" || fail "$2.so looks for libraries in the build folder"
}

has_files() { # has_files <path in the tree>...
  local file
  for file in "$@"; do
    [ -e "$tree/$file" ] || fail "$file is not installed"
  done
}

expect() { # expect <text> <command...>
  local text=$1 output
  shift
  output=$("$@" 2>&1) || fail "$* said: $output"
  grep -qE "$text" <<<"$output" || fail "$* said: $output"
}

refuse() { # refuse <text> <command...>
  local text=$1 output
  shift
  output=$("$@" 2>&1) && fail "$* did not fail: $output"
  grep -qE "$text" <<<"$output" || fail "$* said: $output"
}

build_example() { # build_example <folder of examples/> <option of cmake>...
  cmake -S "$source/examples/$1" -B "$scratch/$1" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$tree" "${@:2}" >"$scratch/$1.log" 2>&1 && cmake --build "$scratch/$1" >>"$scratch/$1.log" 2>&1 ||
    { cat "$scratch/$1.log" >&2; fail "examples/$1 does not build against the installed package"; }
}

by_hand() { # by_hand <package> <source> <program> <flag>...: with the flags that pkg-config gives
  local package=$1 file=$2 program=$3 flags
  shift 3
  flags=$(PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --cflags --libs "$package") || fail "pkg-config does not find $package"
  # shellcheck disable=SC2086 # flags are words
  "$cc" -std=c99 -pedantic -Wall -Wextra -Werror -O1 "$file" -o "$program" $flags "$@" || fail "$file does not build with the flags of pkg-config"
}

blocks_of() { # blocks_of <document>: its blocks that have the name of a C or C++ file, as they stand there, into $scratch
  awk -v folder="$scratch" '/^```/ { file = ""; if (NF == 2 && $2 ~ /\.(c|cpp)$/) file = folder "/" $2; next } file { print >file }' "$source/$1"
}

is_correct_c() { # is_correct_c <file>...: against the installed headers
  "$cc" -std=c99 -pedantic -Wall -Wextra -Werror -I"$tree/include" -fsyntax-only "$@" || fail "$* does not compile"
}
