// Rates of attention from the winners of a database: which winner is taken, what its rate is, and what is said of what is missing.
#include "compiler/Views/CostPlan.h"
#include "compiler/Views/RingRates.h"

#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::views;

namespace {

std::unique_ptr<PatternFile> load(const std::string &name) {
  auto file = PatternFile::load(name);
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  return file.take();
}

Winner winnerOf(const PatternFile &file, int64_t seqlen, double us, const std::string &kind = "forward") {
  Winner winner;
  winner.pattern = *file.digest();
  winner.kind = kind;
  winner.headDim = winner.valueDim = 128;
  winner.batch = 2;
  winner.heads = winner.kvHeads = 4;
  winner.seqlenQ = winner.seqlenK = seqlen;
  winner.deviceName = "NVIDIA H200";
  winner.isTuned = 1;
  winner.medianUs = us;
  return winner;
}

TunedQuestion asked(const PatternFile &file, double keys, bool isBackward = false) {
  return {file, isBackward, 128, 128, keys, "h200"};
}

/// TFLOP/s on the kept pairs of a causal call of winnerOf().
double rateOf(int64_t seqlen, double us) {
  return 2.0 * 256 * 2 * 4 * double(seqlen) * double(seqlen + 1) / 2 / us * 1e-6;
}

std::string planText(const std::string &cluster) {
  return R"({"model": {"layers": 8, "width": 1024, "heads": 8, "ffn": 4096, "vocabulary": 1024}, "context": 8192,
    "attention": "causal", "batch_tokens": "256k", "cluster": {"gpu": ")" +
         cluster + R"(", "gpus": 8, "inside": {"gbps": 450}}})";
}

cost::AttentionSpec specOf(const TunedWinners &tuned, const std::string &cluster = "h200") {
  auto file = cost::parseCostFile(planText(cluster), "plan.json");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  auto plan = planCost(file.take(), 1, &tuned);
  REQUIRE_MESSAGE(plan.isOk(), plan.status().message());
  REQUIRE(!plan->found.best.empty());
  return plan->problem.attention.front();
}

} // namespace

TEST_CASE("the winner is taken whose rows keep most nearly as many keys") {
  const auto file = load("causal");
  const TunedWinners tuned = {"k.db",
                              {winnerOf(*file, 1024, 20), winnerOf(*file, 8192, 900), winnerOf(*file, 32768, 1e4)}};
  const auto rate = tunedRate(tuned, asked(*file, 4000));
  REQUIRE(rate);
  CHECK(rate->tflops == doctest::Approx(rateOf(8192, 900)));
  CHECK(rate->problem == "causal 2x4x8192 on NVIDIA H200");
  CHECK(tunedRate(tuned, asked(*file, 600))->tflops == doctest::Approx(rateOf(1024, 20)));
  CHECK(!tunedRate(tuned, asked(*file, 4000, /*isBackward=*/true)));
}

TEST_CASE("backward counts 2.5 times the FLOPs of forward, as the time of a layer does") {
  const auto file = load("causal");
  const auto rate = tunedRate({"k.db", {winnerOf(*file, 8192, 900, "backward")}}, asked(*file, 4000, true));
  REQUIRE(rate);
  CHECK(rate->tflops == doctest::Approx(2.5 * rateOf(8192, 900)));
}

TEST_CASE("sizes of the winner's own call say which pairs it kept") {
  const auto file = load("sliding_window");
  Winner winner = winnerOf(*file, 4096, 50);
  winner.arguments = "127";
  const auto rate = tunedRate({"k.db", {winner}}, asked(*file, 128));
  REQUIRE(rate);
  const double pairs = 4096.0 * 128 - 128.0 * 127 / 2;
  CHECK(rate->tflops == doctest::Approx(2.0 * 256 * 2 * 4 * pairs / 50 * 1e-6));
}

TEST_CASE("others' winners, untuned ones, and those whose pairs nobody knows are none") {
  const auto file = load("causal");
  const Winner right = winnerOf(*file, 8192, 900);
  std::vector<Winner> wrong(6, right);
  wrong[0].deviceName = "NVIDIA H100 80GB HBM3";
  wrong[1].isTuned = 0;
  wrong[2].headDim = 64;
  wrong[3].pattern = std::string(64, 'a');
  wrong[4].dtype = DType::e4m3;
  wrong[5].arguments = "0:0123456789ab"; // a tensor
  for (const Winner &winner : wrong)
    CHECK(!tunedRate({"k.db", {winner}}, asked(*file, 4000)));
  CHECK(tunedRate({"k.db", {right}}, asked(*file, 4000)));
}

TEST_CASE("a plan takes rates of the database, and marks what that lacks with what to tune") {
  const auto file = load("causal");
  TunedWinners tuned = {"k.db", {winnerOf(*file, 8192, 900), winnerOf(*file, 8192, 3000, "backward")}};
  cost::AttentionSpec spec = specOf(tuned);
  CHECK(!spec.rate.isGuess);
  CHECK(spec.rate.forward == doctest::Approx(rateOf(8192, 900)));
  CHECK(spec.rate.backward == doctest::Approx(2.5 * rateOf(8192, 3000)));
  CHECK(spec.rate.note == "measured: causal 2x4x8192 on NVIDIA H200, backward causal 2x4x8192 on NVIDIA H200, k.db");

  tuned.winners.pop_back();
  spec = specOf(tuned);
  CHECK(spec.rate.isGuess);
  CHECK(spec.rate.forward == doctest::Approx(rateOf(8192, 900)));
  CHECK(spec.rate.backward == 640);
  CHECK(spec.rate.note == "measured: causal 2x4x8192 on NVIDIA H200, k.db; not in k.db, meanwhile measured: "
                          "causal_8k_d128, bench/results/h200-tuned.md");
  CHECK(spec.rate.advice ==
        "on h200 run heddle tune causal --backward --heads=8 --seqlen=8192 --head-dim=128 --db=k.db");

  spec = specOf(tuned, "a100"); // of which the table has nothing either
  CHECK(spec.rate.isGuess);
  CHECK(spec.rate.note.find("not in k.db, meanwhile assumed: no rate of heddle kernels") == 0);
  CHECK(spec.rate.advice.find("on a100 run heddle tune causal --heads=8") == 0);
}

TEST_CASE(
    "kernels of a call over ranks are as fast as the winner whose rows keep most nearly as many keys as the whole") {
  const auto file = load("causal");
  const MeasuredRates measured = {{"k.db", {winnerOf(*file, 1024, 20), winnerOf(*file, 8192, 900)}}, {}};
  RingRequest request;
  request.call.heads = 4, request.call.kvHeads = 4;
  request.sizes.heads = 4, request.sizes.seqlenQ = request.sizes.seqlenK = 8192;
  const auto rate = kernelRate(measured, *file, request, "h200");
  REQUIRE(rate);
  CHECK(rate->tflops == doctest::Approx(rateOf(8192, 900)));
  request.sizes.seqlenQ = request.sizes.seqlenK = 1024;
  CHECK(kernelRate(measured, *file, request, "h200")->tflops == doctest::Approx(rateOf(1024, 20)));
  CHECK(!kernelRate(measured, *file, request, "h100"));
  request.call.dtype = DType::e4m3;
  CHECK(!kernelRate(measured, *file, request, "h200"));
}

TEST_CASE("links are those of such GPUs, within a host or between hosts, of the number of ranks that is nearest") {
  auto links = [](const char *name, int64_t ranks, int64_t hosts) {
    LinkRecord record;
    record.deviceName = name, record.ranks = ranks, record.hosts = hosts, record.nccl = "2.28.9";
    return record;
  };
  const MeasuredRates measured = {{},
                                  {links("NVIDIA H200", 2, 1), links("NVIDIA H200", 8, 1), links("NVIDIA H200", 16, 2),
                                   links("NVIDIA A100-SXM4-80GB", 4, 1)}};
  auto ranksOf = [&](LinkSpan span, int64_t ranks) { return nearestLinks(measured, "h200", span, ranks)->ranks; };
  CHECK(ranksOf(LinkSpan::inHost, 3) == 2);
  CHECK(ranksOf(LinkSpan::inHost, 64) == 8);
  CHECK(ranksOf(LinkSpan::betweenHosts, 2) == 16);
  CHECK(ranksOf(LinkSpan::any, 64) == 16);
  CHECK(!nearestLinks(measured, "h100", LinkSpan::any, 2));
  CHECK(wordsOf(measured.links[2]) == "16 x NVIDIA H200 on 2 hosts, NCCL 2.28.9");
}
