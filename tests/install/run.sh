#!/usr/bin/env bash
# run.sh <source> <build> <package> <fake driver> <cc> <c++> <build type>: installs the runtime, moves the tree, looks at what is in it,
# builds the examples against it through CMake and through pkg-config, and runs them with kernels that the recording driver
# runs. Nothing of the build folder is used behind the installation but the package and that driver.
set -euo pipefail
source=$1 build=$2 package=$3 fake=$4 cc=$5 cxx=$6 build_type=$7
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HEDDLE_CUDA_DRIVER_LIBRARY=$fake
unset LD_LIBRARY_PATH

fail() { echo "FAIL: $*" >&2; exit 1; }

install_and_move() {
  cmake --install "$build" --component heddle_runtime --prefix "$scratch/first" >"$scratch/install.log"
  mv "$scratch/first" "$scratch/tree"
  library=$(find "$scratch/tree" -name 'libheddle_runtime.so')
  libdir=$(dirname "$library")
  for file in include/heddle/heddle.h include/heddle/heddle.hpp "${libdir#"$scratch/tree/"}/pkgconfig/heddle_runtime.pc"; do
    [ -e "$scratch/tree/$file" ] || fail "$file is not installed"
  done
  ! grep -rl "$scratch\|$build\|$source" "$libdir/cmake" "$libdir/pkgconfig" || fail "a package file names a folder of this machine"
}

check_library() {
  readelf -d "$library" | grep -q 'SONAME.*\[libheddle_runtime\.so\.[0-9]\+\]' || fail "no soname with a version"
  local needed others bytes
  needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p')
  others=$(grep -vE '^(libsqlite3|libstdc\+\+|libgcc_s|libm|libc|libdl|libpthread|ld-linux[-a-z0-9_]*)\.so' <<<"$needed") && fail "it needs $others"
  strip -o "$scratch/stripped.so" "$library"
  bytes=$(stat -c %s "$scratch/stripped.so")
  [ "$build_type" != Release ] || [ "$bytes" -lt 1000000 ] || fail "libheddle_runtime.so has $bytes bytes stripped, asked are less than 1000000"
  echo "libheddle_runtime.so: $bytes bytes stripped, needs" $needed
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

build_example() { # build_example <folder of examples/>
  cmake -S "$source/examples/$1" -B "$scratch/$1" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$scratch/tree" >"$scratch/$1.log" 2>&1 && cmake --build "$scratch/$1" >>"$scratch/$1.log" 2>&1 ||
    { cat "$scratch/$1.log" >&2; fail "examples/$1 does not build against the installed package"; }
}

run_attention() { # run_attention <program>
  expect '300 rows of 8 heads are right' "$1" "$package" causal 300
  expect '300 rows of 8 heads are right' "$1" "$package" sliding_window 300 17
  refuse 'run-time size number 0 of 1 is missing' "$1" "$package" sliding_window 300
  refuse "has no pattern 'dense'|it names causal" "$1" "$package" dense 300
  refuse 'notFound' "$1" "$scratch/none.heddle" causal 300
  HEDDLE_FAKE_CUDA_FAIL=cuMemcpyDtoHAsync_v2=scribble refuse '1 elements of out are not 1' "$1" "$package" causal 300
  HEDDLE_FAKE_CUDA_FAIL=cuLaunchKernel=700 refuse 'CUDA_ERROR_ILLEGAL_ADDRESS' "$1" "$package" causal 300
}

install_and_move
check_library
build_example c
run_attention "$scratch/c/attention"

export PKG_CONFIG_PATH=$libdir/pkgconfig
# shellcheck disable=SC2046 # flags are words
"$cc" -std=c99 -pedantic -Wall -Wextra -Werror -O1 "$source/examples/c/attention.c" -o "$scratch/attention" $(pkg-config --cflags --libs heddle_runtime) -ldl
LD_LIBRARY_PATH=$libdir run_attention "$scratch/attention"

# The blocks of docs/embedding.md that have a file name, as they stand there.
awk -v folder="$scratch" '/^```/ { file = ""; if (NF == 2 && $2 ~ /\.(c|cpp)$/) file = folder "/" $2; next } file { print >file }' "$source/docs/embedding.md"
mkdir -p "$scratch/compiler/heddle"
cp "$scratch/tree/include/heddle/heddle.h" "$source/compiler/Library/heddle_compiler.h" "$scratch/compiler/heddle"
for block in open call compile; do
  "$cc" -std=c99 -pedantic -Wall -Wextra -Werror -I"$scratch/compiler" -fsyntax-only "$scratch/$block.c" || fail "$block.c of docs/embedding.md does not compile"
done
"$cxx" -std=c++17 -Wall -Wextra -Werror -I"$scratch/tree/include" -fsyntax-only "$scratch/serve.cpp" || fail "serve.cpp of docs/embedding.md does not compile"

build_example cpp
expect '100 requests of 40 lengths, 8 threads on 4 streams: .* 0 results differ' "$scratch/cpp/server" "$package" sliding_window 8 4 100 50
HEDDLE_FAKE_CUDA_FAIL=cuMemcpyDtoHAsync_v2=scribble@70 refuse 'results of the pool differ' "$scratch/cpp/server" "$package" sliding_window 8 4 50 50
refuse 'unavailable: open driver: cannot open' env HEDDLE_CUDA_DRIVER_LIBRARY=/nowhere/libcuda.so "$scratch/cpp/server" "$package" causal
echo "ok"
