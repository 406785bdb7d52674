#!/usr/bin/env bash
# compiler.sh <source> <build> <fake driver> <cc> <c++>: installs libheddle, moves the tree, builds examples/compiler against it through
# CMake and through pkg-config, and runs it: attention on the processors, then a kernel that is compiled, filed and launched. The
# recording driver takes launches of such kernels and runs none, so the example must find out that nothing was computed. What
# needs NVRTC is skipped, and says so, where set-up found none. examples/server is built against the same tree.
set -euo pipefail
source=$1 build=$2 fake=$3 cc=$4 cxx=$5
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HEDDLE_FAKE_CUDA_ARCH=80 # whose kernels are the portable ones: that driver takes blocks of at most 384 threads
unset LD_LIBRARY_PATH
. "$source/tests/install/common.sh"

check_nvrtc() { # what set-up found or fetched comes along
  [ ! -e "$build/nvrtc" ] || has_files "${libdir#"$tree/"}/heddle/nvrtc/libnvrtc.so.13"
}

check_program() { # bin/heddle and the library beside it, the patterns that come along
  expect 'kept pairs' "$tree/bin/heddle" explain "$tree/share/heddle/patterns/causal.mlir" --seqlen=128
  expect 'library:causal' "$tree/bin/heddle" explain causal --seqlen=128
  has_files share/man/man1/heddle.1 share/bash-completion/completions/heddle share/zsh/site-functions/_heddle share/fish/vendor_completions.d/heddle.fish
  [ "$(find "$tree/share/heddle/patterns" -name '*.mlir' | wc -l)" -eq "$(find "$source/patterns" -name '*.mlir' | wc -l)" ] || fail "patterns are missing"
}

run_compile() { # run_compile <program> <database>
  local nothing='153600 elements of the GPU.s out are not those of the processors' # 300 x 8 x 64
  export HEDDLE_CUDA_DRIVER_LIBRARY=/nowhere/libcuda.so
  expect '300 rows of 8 heads on the processors, left = 255' "$1" "$2" 300
  expect 'no GPU here: open driver: cannot open' "$1" "$2" 300 17
  refuse 'processors: invalidArgument: .*left' "$1" "$2" 300 5000000000
  export HEDDLE_CUDA_DRIVER_LIBRARY=$fake
  refuse 'kernel: unavailable: .*NVRTC' env HEDDLE_NVRTC_LIBRARY=/nowhere/libnvrtc.so "$1" "$2" 300
  if ! [ -e "$build/nvrtc" ]; then
    echo "skipped: set-up found no NVRTC to compile kernels with"
    return
  fi
  refuse "$nothing" "$1" "$2" 300
  refuse 'kernel [0-9a-f]{12} for sm_[0-9a-z]+, the default' env HEDDLE_NVRTC_LIBRARY=/nowhere/libnvrtc.so "$1" "$2" 300 # filed by then
  HEDDLE_FAKE_CUDA_FAIL=cuLaunchKernel=700,cuGraphLaunch=700 refuse 'launch: internal: .*CUDA_ERROR_ILLEGAL_ADDRESS' "$1" "$2" 300
}

install_and_move heddle libheddle
has_files include/heddle/heddle.h include/heddle/heddle.hpp include/heddle/heddle_compiler.h include/heddle/heddle_stats.h "${libdir#"$tree/"}/pkgconfig/heddle.pc"
check_nvrtc
check_program
build_example compiler
run_compile "$scratch/compiler/compile" "$scratch/cmake.db"
by_hand heddle "$source/examples/compiler/compile.c" "$scratch/compile" -I"$source/examples/c" -lm -ldl
LD_LIBRARY_PATH=$libdir run_compile "$scratch/compile" "$scratch/pkg-config.db"

build_server() { # what it answers is for tests/server, which take that of the build; most of its time is the compiler's
  if ! pkg-config --exists cpp-httplib; then
    echo "skipped: no libcpp-httplib-dev for examples/server"
    return
  fi
  local launcher
  launcher=$(command -v ccache || true)
  export CCACHE_BASEDIR=$scratch
  build_example server -DCMAKE_CXX_FLAGS_RELEASE=-O0 -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher"
  expect 'safetensors of the model' "$scratch/server/byte-server" --help
  refuse 'byte-server: io: /nowhere: cannot be read' "$scratch/server/byte-server" --weights=/nowhere
}
build_server

blocks_of docs/embedding.md
is_correct_c "$scratch/open.c" "$scratch/call.c" "$scratch/compile.c"
echo "ok"
