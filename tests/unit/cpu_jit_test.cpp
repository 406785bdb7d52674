// The JIT alone: lines of keep values, use from many threads, and what it refuses.
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Emit/PatternInfo.h"
#include "support/ModuleLoader.h"
#include <algorithm>
#include <atomic>
#include <doctest/doctest.h>
#include <thread>

using namespace heddle;
using namespace heddle::test;

namespace {

JitContext contextOf(const HandPattern &pattern, int head = 2) {
  JitContext context;
  context.head = head;
  context.heads = 3;
  context.seqlenQ = context.seqlenK = 200;
  std::copy(pattern.params.begin(), pattern.params.end(), context.params.begin());
  return context;
}

} // namespace

TEST_CASE("lines of keep values equal the values one by one") {
  for (const HandPattern &pattern : allHandPatterns()) {
    JitPattern jit = compileForCpu(pattern);
    JitContext context = contextOf(pattern);
    for (int branch = 0; branch < pattern.branchCount(); ++branch)
      for (int step : {1, 3, 4})
        for (int count : {0, 1, 7, 64, 131}) {
          JitKeepLine line{branch, 40, 17, step, count};
          std::vector<uint8_t> row(count + 1, 99), column(count + 1, 99);
          jit.keepRow(context, line, row.data());
          jit.keepColumn(context, line, column.data());
          INFO(pattern.name() << " branch " << branch << " step " << step << " count " << count);
          CHECK(row[count] == 99);
          CHECK(column[count] == 99);
          long wrong = 0;
          for (int i = 0; i < count; ++i) {
            wrong += row[i] != pattern.keeps(context, branch, 40, 17 + step * i);
            wrong += column[i] != pattern.keeps(context, branch, 40 + step * i, 17);
          }
          CHECK(wrong == 0);
        }
  }
}

TEST_CASE("many threads share one compiled pattern") {
  HandPattern pattern = windowPattern(9, 4);
  JitPattern jit = compileForCpu(pattern);
  std::atomic<long> kept{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&kept, copy = jit, context = contextOf(pattern)] {
      for (int q = 0; q < 200; ++q)
        for (int k = 0; k < 200; ++k)
          kept += copy.keep(context, 0, q, k);
    });
  for (std::thread &thread : threads)
    thread.join();
  // 200 rows of 14 keys, less the 45 before the first key and the 10 after the last.
  CHECK(kept == 4 * (200 * 14 - 45 - 10));
}

TEST_CASE("a pattern outlives the module and the context that it came from") {
  JitPattern jit = [] { return compileForCpu(causalPattern()); }();
  CHECK(jit.info().name == "causal");
  CHECK(jit.keep(contextOf(causalPattern()), 0, 3, 3));
  CHECK_FALSE(jit.keep(contextOf(causalPattern()), 0, 3, 4));
}

TEST_CASE("a module with a missing function is refused by name") {
  ModuleLoader loader("func.func @pattern_variant(%a: i32) { return }");
  CHECK(failed(JitPattern::create(loader.get(), {"empty", 0, 1, 1})));
  CHECK(loader.errors().find("'pattern_variant'") != std::string::npos);
}

TEST_CASE("too many run-time sizes are refused with the limit") {
  std::string module = windowPattern(1, 1).module;
  ModuleLoader loader(module);
  CHECK(failed(JitPattern::create(loader.get(), {"window", 33, 1, 1})));
  CHECK(loader.errors().find("pattern 'window'") != std::string::npos);
}
