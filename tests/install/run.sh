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
. "$source/tests/install/common.sh"

check_files() {
  local others
  has_files include/heddle/heddle.h include/heddle/heddle.hpp include/heddle/heddle_arena.h include/heddle/heddle_stats.h "${libdir#"$tree/"}/pkgconfig/heddle_runtime.pc"
  others=$(find "$tree" -type f | grep -vE '/heddle/heddle(\.h|\.hpp|_arena\.h|_stats\.h)$|/libheddle_runtime\.so[.0-9]*$|/cmake/heddle_runtime/[^/]*\.cmake$|/heddle_runtime\.pc$') &&
    fail "the runtime alone installs $others"
  return 0
}

check_library() {
  local needed others bytes
  needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p')
  others=$(grep -vE '^(libsqlite3|libstdc\+\+|libgcc_s|libm|libc|libdl|libpthread|ld-linux[-a-z0-9_]*)\.so' <<<"$needed") && fail "it needs $others"
  strip -o "$scratch/stripped.so" "$library"
  bytes=$(stat -c %s "$scratch/stripped.so")
  [ "$build_type" != Release ] || [ "$bytes" -lt 1000000 ] || fail "libheddle_runtime.so has $bytes bytes stripped, asked are less than 1000000"
  echo "libheddle_runtime.so: $bytes bytes stripped, needs" $needed
}

run_attention() { # run_attention <program>
  expect '300 rows of 8 heads are right' "$1" "$package" causal 300
  expect '300 rows of 8 heads are right' "$1" "$package" sliding_window 300 17
  refuse 'run-time size number 0 is missing' "$1" "$package" sliding_window 300
  refuse "has no pattern 'dense'|it names causal" "$1" "$package" dense 300
  refuse 'notFound' "$1" "$scratch/none.heddle" causal 300
  HEDDLE_FAKE_CUDA_FAIL=cuMemcpyDtoHAsync_v2=scribble refuse '1 elements of out are not 1' "$1" "$package" causal 300
  HEDDLE_FAKE_CUDA_FAIL=cuLaunchKernel=700,cuGraphLaunch=700 refuse 'CUDA_ERROR_ILLEGAL_ADDRESS' "$1" "$package" causal 300
}

install_and_move heddle_runtime libheddle_runtime
check_files
check_library
build_example c
run_attention "$scratch/c/attention"
by_hand heddle_runtime "$source/examples/c/attention.c" "$scratch/attention" -ldl
LD_LIBRARY_PATH=$libdir run_attention "$scratch/attention"

blocks_of docs/embedding.md
blocks_of docs/operations.md
is_correct_c "$scratch/open.c" "$scratch/call.c" "$scratch/arena.c" "$scratch/drift.c"
"$cxx" -std=c++17 -Wall -Wextra -Werror -I"$tree/include" -fsyntax-only "$scratch/serve.cpp" || fail "serve.cpp of docs/embedding.md does not compile"

for file in GpuAttention NoCpuAttention; do # all of examples/server that knows which library it is built over
  "$cxx" -std=c++17 -Wall -Wextra -Werror -I"$tree/include" -I"$source/examples/c" -fsyntax-only "$source/examples/server/$file.cpp" ||
    fail "examples/server/$file.cpp does not compile against the runtime alone"
done

build_example cpp
expect '100 requests of 40 lengths, 8 threads on 4 streams: .* 0 results differ' "$scratch/cpp/server" "$package" sliding_window 8 4 100 50
HEDDLE_FAKE_CUDA_FAIL=cuMemcpyDtoHAsync_v2=scribble@70 refuse 'results of the pool differ' "$scratch/cpp/server" "$package" sliding_window 8 4 50 50
refuse 'unavailable: open driver: cannot open' env HEDDLE_CUDA_DRIVER_LIBRARY=/nowhere/libcuda.so "$scratch/cpp/server" "$package" causal
echo "ok"
