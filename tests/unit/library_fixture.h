// What the tests of libheddle's C interface share: handles that close, and a compiler over a scratch database.
#ifndef HEDDLE_TESTS_UNIT_LIBRARY_FIXTURE_H
#define HEDDLE_TESTS_UNIT_LIBRARY_FIXTURE_H

#include "support/Places.h"
#include "compiler/Library/heddle_compiler.h"
#include "scratch_fixture.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace heddle::test {

#define CHECK_OK(call) REQUIRE_MESSAGE((call) == HEDDLE_OK, std::string(heddle_last_message()))
#define CHECK_REFUSED(call, code, words)                                                                               \
  do {                                                                                                                 \
    CHECK((call) == (code));                                                                                           \
    CHECK_MESSAGE(std::string(heddle_last_message()).find(words) != std::string::npos,                                 \
                  std::string(heddle_last_message()));                                                                 \
  } while (false)

template <class T, void (*close)(T *)> struct Closer {
  void operator()(T *handle) const { close(handle); }
};
using PatternHandle = std::unique_ptr<heddle_pattern, Closer<heddle_pattern, heddle_pattern_close>>;
using CompilerHandle = std::unique_ptr<heddle_compiler, Closer<heddle_compiler, heddle_compiler_close>>;
using KernelHandle = std::unique_ptr<heddle_kernel, Closer<heddle_kernel, heddle_kernel_close>>;
using DeviceHandle = std::unique_ptr<heddle_device, Closer<heddle_device, heddle_device_close>>;
using TaskHandle = std::unique_ptr<heddle_task, Closer<heddle_task, heddle_task_close>>;

inline constexpr const char *kWindowText =
    R"(attn.pattern @near(%left: i32 {attn.default = 63 : i32, attn.min = 0 : i32, attn.doc = "keys before"}) {
  %w = attn.window [%left, 0]
  attn.softmax union(%w)
})";

inline PatternHandle parse(const char *text) {
  heddle_pattern *pattern = nullptr;
  CHECK_OK(heddle_pattern_parse(text, "near.mlir", nullptr, &pattern));
  return PatternHandle(pattern);
}

template <class T> T sized() {
  T made = {};
  made.struct_size = sizeof made;
  return made;
}

inline heddle_kernel_info infoOf(const heddle_kernel *kernel) {
  auto info = sized<heddle_kernel_info>();
  CHECK_OK(heddle_kernel_get_info(kernel, &info));
  return info;
}

inline heddle_problem smallProblem() {
  auto problem = sized<heddle_problem>();
  problem.dtype = HEDDLE_BF16;
  problem.head_dim = 64;
  problem.batch = 1, problem.heads = 4, problem.kv_heads = 4;
  problem.seqlen_q = problem.seqlen_k = 512;
  return problem;
}

inline CompilerHandle openCompiler(const std::string &database, uint32_t flags = 0) {
  auto options = sized<heddle_compiler_options>();
  options.flags = flags;
  options.database = database.c_str();
  options.shipped = "";
  options.program = "";
  heddle_compiler *compiler = nullptr;
  CHECK_OK(heddle_compiler_open(&options, &compiler));
  return CompilerHandle(compiler);
}

} // namespace heddle::test

#endif
