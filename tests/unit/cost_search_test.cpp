//===- cost_search_test.cpp - a search whose instructions are counted ---------===//
// What cost_search.sh runs under callgrind: all but micro-batches is left open, and most layouts that pass the other questions fit.
#include "compiler/Cost/ReadProblem.h"
#include "compiler/Cost/Search.h"

#include <doctest/doctest.h>

#include <cstdio>

using namespace heddle;
using namespace heddle::cost;

TEST_CASE("a search that leaves most open") {
  Result<CostFile> file = parseCostFile(
      R"({"model": {"layers": 8, "width": 2048, "heads": 16, "ffn": 8192, "vocabulary": 32768, "experts": 4,
          "active_experts": 2}, "context": "32k", "batch_tokens": "16M",
          "cluster": {"gpu": "h200", "gpus": 32, "inside": {"gbps": 450}, "between": {"gbps": 50},
          "host_link_gbps": 55, "host_memory_gib": 2048},
          "parallelism": {"micro_batch": [1, 2]}})",
      "plan.json");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  for (AttentionSpec &spec : file->problem.attention) {
    spec.pairs = 16 * 32768.0 * 32769 / 2;
    spec.rate = {600, 500, false, ""};
    spec.share = [](int64_t ranks) { return ContextShare{1, 32768.0 * double(ranks - 1) / double(ranks), "zigzag"}; };
  }
  const SearchResult found = search(file->problem, 5);
  CHECK(found.best.size() == 5);
  CHECK(found.possible * 2 > found.tried); // those that are possible take longest
  std::printf("layouts %lld possible %lld\n", static_cast<long long>(found.tried),
              static_cast<long long>(found.possible));
}
