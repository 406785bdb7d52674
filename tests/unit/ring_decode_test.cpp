// What queries over a cache on all ranks read, against the definition pair by pair, and predicted times against arithmetic by hand.
#include "compiler/Views/RingDecode.h"
#include "ring_fixture.h"
#include "support/AnalysisChecks.h"
#include "support/PatternFiles.h"

using namespace heddle;
using namespace heddle::test;
using namespace heddle::views;

namespace {

constexpr int64_t kKeys = 64, kQueries = 3, kRanks = 4, kKvHeads = 2, kHeads = 4;
constexpr double kBytesOfKey = (32 + 32) * 2;

RingRequest decodeRequest(const attn::ProblemSizes &sizes, int64_t kvHeads = 4) {
  RingRequest request = requestOf(1);
  request.sizes = sizes;
  request.call.heads = sizes.heads, request.call.kvHeads = kvHeads;
  request.call.rates.memoryGBps = 1 / 0.85; // of which clusters read 1 GB/s
  return request;
}

/// Keys of a range that some query of a group of heads keeps, each once for the group.
int64_t keptKeys(oracle::PatternOracle &oracle, const oracle::Problem &problem, attn::IndexRange range) {
  std::set<std::pair<int64_t, int64_t>> kept;
  for (int64_t head = 0; head < problem.heads; ++head)
    for (unsigned branch = 0; branch < oracle.branchCount(); ++branch) {
      const oracle::Pairs pairs = oracle::pairsOf(oracle, problem, branch, head, attn::Direction::Forward);
      for (int64_t row = 0; row < problem.seqlenQ; ++row)
        for (int64_t key = range.begin; key < range.end; ++key)
          if (pairs.at(row, key))
            kept.insert({head / (kHeads / kKvHeads), key});
    }
  return int64_t(kept.size());
}

double msOf(const DecodeTimes &times, const std::string &name) {
  for (const DecodeScheme &scheme : times.schemes)
    if (scheme.name == name)
      return scheme.ms.value_or(-1);
  return -2;
}

} // namespace

TEST_CASE("every file in patterns/: what the last queries keep of each rank's keys") {
  long exact = 0, patterns = 0;
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    const auto file = loaded(path);
    oracle::Problem problem{kHeads, kQueries, kKeys, kKeys - kQueries, 0, sizesFrom(*file, 9)};
    problem.operands = maskOperands(*file, kHeads, kQueries, kKeys, problem.parameters);
    oracle::PatternOracle oracle(file->lowered(), problem);
    const auto times = decodeTimes(*file, decodeRequest(oracle::toSizes(problem), kKvHeads));
    REQUIRE_MESSAGE(times.isOk(), times.status().message());
    REQUIRE(times->shares.size() == kRanks);
    for (const DecodeShare &share : times->shares) {
      const double wanted = double(keptKeys(oracle, problem, share.keys)) * kBytesOfKey;
      CHECK(share.keptBytes >= wanted);
      if (times->isExact)
        CHECK(share.keptBytes == wanted);
    }
    ++patterns, exact += times->isExact;
  }
  CHECK(exact > patterns * 3 / 4);
}

TEST_CASE("the slowest rank, a message of results, and their merge") {
  const auto causal = parsed(unionText("%m = attn.causal"));
  RingRequest request = decodeRequest({8, 1, 64, 63, 0, {}});
  request.call.rates.latencyUs = 5;
  const auto times = decodeTimes(*causal, request);
  REQUIRE(times.isOk());
  const double ofRank = 16 * 4 * kBytesOfKey / 1e6, results = 4 * 33 * 8 / 1e6;
  for (const DecodeShare &share : times->shares)
    CHECK(share.ms == doctest::Approx(8e-3 + ofRank));
  CHECK(times->receivedBytes == 3 * 4 * 33 * 8);
  CHECK(times->messageMs == doctest::Approx(3 * results + 5e-3));
  CHECK(msOf(*times, "keys") == doctest::Approx(8e-3 + ofRank + times->messageMs + times->mergeMs));
  CHECK(msOf(*times, "one") == doctest::Approx(8e-3 + 4 * ofRank));
  CHECK(msOf(*times, "heads") ==
        doctest::Approx(8e-3 + ofRank + 3 * results / 4 / 2 + 5e-3)); // a fourth of the heads, in 2 bytes
}

TEST_CASE("clusters share the heads of one sequence of few rows and keys; all processors read other calls") {
  const auto causal = parsed(unionText("%m = attn.causal"));
  const auto rateOf = [&](int64_t batch, int64_t queries, int64_t keys) {
    RingRequest request = decodeRequest({8, queries, keys, keys - queries, 0, {}});
    request.call.batch = batch, request.call.rates.tflops = 1e9;
    const auto times = decodeTimes(*causal, request);
    REQUIRE(times.isOk());
    CHECK(times->gbps == doctest::Approx(times->shares[0].keptBytes / (times->shares[0].ms - 8e-3) / 1e6));
    return times->gbps;
  };
  const double all = 0.93 / 0.85; // beside what clusters read
  CHECK(rateOf(1, 4, 1 << 12) == doctest::Approx(1));
  CHECK(rateOf(2, 4, 1 << 12) == doctest::Approx(all));
  CHECK(rateOf(1, 5, 1 << 12) == doctest::Approx(all)); // two heads share one of k and v
  CHECK(rateOf(1, 1, 1 << 22) == doctest::Approx(1));   // a fourth of them on each rank
  CHECK(rateOf(1, 1, 1 << 23) == doctest::Approx(all));
}

TEST_CASE("a window lies on the last rank; queries that are many take as long as their products") {
  const auto window = parsed(unionText("%m = attn.window [7, 0]"));
  const auto times = decodeTimes(*window, decodeRequest({8, 1, 64, 63, 0, {}}));
  REQUIRE(times.isOk());
  CHECK(times->shares[2].keptBytes == 0);
  CHECK(times->shares[3].keptBytes == 8 * 4 * kBytesOfKey);
  const auto full = parsed(unionText("%m = attn.full"));
  RingRequest request = decodeRequest({8, 64, 64, 0, 0, {}});
  request.call.rates.tflops = 1e-3;
  const auto many = decodeTimes(*full, request);
  REQUIRE(many.isOk());
  CHECK(many->shares[0].ms == doctest::Approx(8e-3 + 64 * 16 * 8 * 4 * 32 / (0.35 * 1e6)));
}

TEST_CASE("what cannot be shared says so") {
  const auto causal = parsed(unionText("%m = attn.causal"));
  RingRequest request = decodeRequest({8, 1, 64, 63, 0, {}});
  request.ranks = 3;
  const auto times = decodeTimes(*causal, request);
  REQUIRE(times.isOk());
  CHECK(msOf(*times, "heads") == -1);
  CHECK(times->schemes[1].whyNot == "3 ranks do not divide 4 heads of k and v");
  request.ranks = 65;
  const auto refused = decodeTimes(*causal, request);
  REQUIRE(!refused.isOk());
  CHECK(refused.status().message() == "--seqlen: expected at least a key for each of 65 ranks, got 64");
}
