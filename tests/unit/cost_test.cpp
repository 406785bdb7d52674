// The planner's arithmetic by hand: parameters, products, collectives, pipelines, memory, failures; what is refused, and why.
#include "compiler/Cost/Memory.h"
#include "compiler/Cost/Outlook.h"
#include "compiler/Cost/ReadProblem.h"
#include "compiler/Cost/Search.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

using namespace heddle;
using namespace heddle::cost;

namespace {

constexpr double kGiB = double(1 << 30);

/// A GPU of 100 TFLOP/s on which sweeps take no time, and links of 100 GB/s inside a host of 8 and 10 beyond.
constexpr const char *kCluster =
    R"("cluster": {"gpu": {"name": "made up", "tflops": 100, "bandwidth_gbps": 1e12, "memory_gib": 80, "units": 64},
       "gpus": GPUS, "inside": {"gbps": 100}, "between": {"gbps": 10}},)";

std::string replaced(std::string text, const std::string &word, const std::string &with) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + with.size()))
    text.replace(at, word.size(), with);
  return text;
}

/// 8 layers of width 1024, 8 heads, an ffn of 4096 without gates; 1024 tokens.
std::string smallText(int gpus, const std::string &more, int sequences = 64) {
  return replaced(
      R"({"model": {"layers": 8, "width": 1024, "heads": 8, "ffn": 4096, "vocabulary": 1024, "gated": false},
    "attention": {"pattern": "causal", "forward_tflops": 1e6, "backward_tflops": 1e6}, "context": 1024,)" +
          std::string(kCluster) + R"("batch_tokens": )" + std::to_string(1024 * sequences) +
          (more.empty() ? "" : ", " + more) + "}",
      "GPUS", std::to_string(gpus));
}

CostProblem problemOf(const std::string &text) {
  Result<CostFile> file = parseCostFile(text, "plan.json");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  CostProblem problem = file->problem;
  for (AttentionSpec &spec : problem.attention) { // what the analysis says of causal
    spec.pairs = double(problem.model.heads) * double(problem.context) * double(problem.context + 1) / 2;
    spec.rate = {spec.givenForward.value_or(1), spec.givenBackward.value_or(1), false, "as given"};
    const double tokens = double(problem.context);
    spec.share = [tokens](int64_t ranks) {
      return ContextShare{1, tokens * double(ranks - 1) / double(ranks), "zigzag"};
    };
  }
  return problem;
}

double timeOf(const StepTime &step, TimeItem item) { return step.seconds[size_t(item)]; }

StepTime timed(const CostProblem &problem, const Layout &layout) {
  std::string why;
  REQUIRE_MESSAGE(!refusalOf(problem, layout, &why), why);
  return stepTime(problem, layout, stageTimes(problem, layout));
}

Layout layoutOf(int64_t tensor, int64_t pipeline, int64_t context, int64_t data) {
  Layout layout;
  layout.tensor = tensor;
  layout.pipeline = pipeline;
  layout.context = context;
  layout.data = data;
  return layout;
}

/// FLOPs of all products of a forward pass of so many tokens through the small model.
double forwardFlops(double tokens) { return 2 * tokens * (8 * 12.0 * 1024 * 1024 + 1024.0 * 1024); }

double rate() { return 100e12 * efficiency().products; }

CostProblem ofFile(const std::string &model, int64_t context = 2048) {
  return problemOf(R"({"model": )" + model + R"(, "context": )" + std::to_string(context) + "," +
                   replaced(kCluster, "GPUS", "8") + R"("batch_tokens": )" + std::to_string(context) + "}");
}

std::string messageOf(const std::string &text) {
  const Result<CostFile> file = parseCostFile(text, "plan.json");
  return file ? "" : file.status().message();
}

} // namespace

TEST_CASE("parameters are those that were published") {
  CHECK(
      ofFile(
          R"({"layers": 128, "width": 25600, "heads": 160, "ffn": 102400, "vocabulary": 51200, "gated": false, "tied": true})")
          .counts.total == doctest::Approx(1008.0e9).epsilon(0.001)); // arXiv:2104.04473, table 1
  CHECK(ofFile(R"({"layers": 126, "width": 16384, "heads": 128, "kv_heads": 8, "ffn": 53248, "vocabulary": 128256})")
            .counts.total == doctest::Approx(405.85e9).epsilon(0.001));
  const CostProblem deep = ofFile(
      R"({"layers": 61, "width": 7168, "heads": 128, "head_dim": 192, "value_dim": 128, "ffn": 18432, "vocabulary": 129280,
          "experts": 256, "active_experts": 8, "shared_experts": 1, "expert_ffn": 2048, "dense_layers": 3,
          "latent": {"query": 1536, "key_value": 512, "rope": 64}})",
      4096);
  CHECK(deep.counts.total == doctest::Approx(671e9).epsilon(0.001)); // arXiv:2412.19437
  CHECK(deep.counts.active == doctest::Approx(37e9).epsilon(0.02));
  CHECK(flopsOfToken(deep) == doctest::Approx(250e9).epsilon(0.01)); // arXiv:2505.09343, table 2
}

TEST_CASE("on one GPU a step is three times the products of forward") {
  const CostProblem problem = problemOf(smallText(1, ""));
  const StepTime step = timed(problem, layoutOf(1, 1, 1, 1));
  CHECK(timeOf(step, TimeItem::products) == doctest::Approx(3 * forwardFlops(65536) / rate()));
  CHECK(timeOf(step, TimeItem::bubble) == 0);
  CHECK(step.total == doctest::Approx(timeOf(step, TimeItem::products)).epsilon(0.01));
  Layout again = layoutOf(1, 1, 1, 1);
  again.recompute = Recompute::full;
  CHECK(timeOf(timed(problem, again), TimeItem::recompute) ==
        doctest::Approx(2 * 65536 * 8 * 12.0 * 1024 * 1024 / rate()).epsilon(0.01));
}

TEST_CASE("attention takes kept pairs over the rates of its kernels, backward 2.5 times the FLOPs") {
  CostProblem problem = problemOf(smallText(1, ""));
  problem.attention[0].rate = {50, 25, false, ""};
  const double pairs = 8.0 * 1024 * 1025 / 2, flops = 8 * 64 * pairs * 2 * (128 + 128);
  CHECK(timeOf(timed(problem, layoutOf(1, 1, 1, 1)), TimeItem::attention) ==
        doctest::Approx(flops / 50e12 + 2.5 * flops / 25e12));
  problem.attention[0].share = [](int64_t) { return ContextShare{1.5, 0, "contiguous"}; };
  problem.cluster.gpus = 2;
  CHECK(timeOf(timed(problem, layoutOf(1, 1, 2, 1)), TimeItem::attention) ==
        doctest::Approx(1.5 / 2 * (flops / 50e12 + 2.5 * flops / 25e12)));
}

TEST_CASE("a pipeline waits for its first and last micro-batch, less with parts and without weights' gradients") {
  const CostProblem problem = problemOf(smallText(4, ""));
  Layout layout = layoutOf(1, 4, 1, 1);
  const StepTime plain = timed(problem, layout);
  const double microBatch = (plain.forwardMs + plain.backwardMs) / 1e3;
  const double hop = 1024.0 * 1024 * 2 / (100e9 * efficiency().insideLink); // 3 stages, there and back
  CHECK(timeOf(plain, TimeItem::bubble) == doctest::Approx(3 * microBatch + 6 * hop));
  CHECK(timeOf(plain, TimeItem::pipeline) == doctest::Approx(64 * 2 * hop));
  layout.virtualStages = 2;
  CHECK(timeOf(timed(problem, layout), TimeItem::bubble) == doctest::Approx(1.5 * microBatch + 6 * hop));
  CHECK(timeOf(timed(problem, layout), TimeItem::pipeline) == 0); // hidden
  layout.virtualStages = 1;
  layout.schedule = Schedule::zeroBubble; // a third of a micro-batch, twice
  CHECK(timeOf(timed(problem, layout), TimeItem::bubble) == doctest::Approx(microBatch + 6 * hop).epsilon(0.01));
  layout.schedule = Schedule::dualPipe; // (4 / 2 - 1)(F + 2 B - 3 W), in thirds of a micro-batch 1 + 4 - 3
  CHECK(timeOf(timed(problem, layout), TimeItem::bubble) ==
        doctest::Approx(2.0 / 3 * microBatch + 6 * hop).epsilon(0.01));
}

TEST_CASE("collectives move their bytes through the links of their group") {
  const CostProblem problem = problemOf(smallText(16, ""));
  const Links links(problem.cluster);
  const double inside = 100e9 * efficiency().insideLink, between = 10e9 * efficiency().betweenLink;
  CHECK(links.gather({8, 1}, 8e9) == doctest::Approx(7e9 / inside));
  CHECK(links.reduce({8, 1}, 8e9) == doctest::Approx(2 * 7e9 / inside));
  CHECK(links.gather({2, 8}, 8e9) == doctest::Approx(4e9 / between));          // one of each host
  CHECK(links.gather({16, 1}, 16e9) == doctest::Approx(15e9 / (8 * between))); // eight links out of each
  CHECK(links.gather({4, 4}, 8e9) == doctest::Approx(6e9 / (2 * between)));    // two of each
  CHECK(links.exchange({16, 1}, 16e9) == doctest::Approx(8e9 / between));      // half of it leaves the host
  CHECK(links.gather({5, 1}, 10e9) == doctest::Approx(8e9 / (2 * between)));   // one of two hosts has two of five
  CHECK(links.gather({1, 1}, 8e9) == 0);
}

TEST_CASE("gradients wait for nothing that the last backward hides") {
  const CostProblem hidden = problemOf(smallText(16, ""));
  CostProblem shown = hidden;
  shown.overlap.data = false;
  const Layout layout = layoutOf(8, 1, 1, 2);
  const double parameters = (8 * 12.0 * 1024 * 1024 + 2 * 1024.0 * 1024) / 8;
  CHECK(rankParameters(shown, layout).all() == doctest::Approx(parameters));
  const double moved = parameters * 4 / (10e9 * efficiency().betweenLink); // an all-reduce of two ranks
  CHECK(timeOf(timed(shown, layout), TimeItem::data) == doctest::Approx(moved));
  const StepTime step = timed(hidden, layout);
  CHECK(timeOf(step, TimeItem::data) == doctest::Approx(std::max(0.0, moved - step.backwardMs / 1e3)));
  Layout zero = layout;
  zero.zero = 1; // half of an all-reduce, and the weights in two bytes
  CHECK(timeOf(timed(shown, zero), TimeItem::data) == doctest::Approx(moved * 0.75));
  zero.zero = 3; // of each of 32 micro-batches, weights twice
  CHECK(timeOf(timed(shown, zero), TimeItem::data) == doctest::Approx(32 * moved));
}

TEST_CASE("gradients that no product adds up are swept once more behind each micro-batch that is not alone") {
  const std::string apart = R"("precision": {"products": "fp16", "gradient_bytes": 2, "gradients_apart": true})";
  CostProblem fused = problemOf(smallText(1, "")), swept = problemOf(smallText(1, apart));
  for (CostProblem *problem : {&fused, &swept})
    problem->cluster.gpu.bandwidthGBps = 1000;
  Layout layout = layoutOf(1, 1, 1, 1);
  auto more = [&] {
    return timeOf(timed(swept, layout), TimeItem::sweeps) - timeOf(timed(fused, layout), TimeItem::sweeps);
  };
  CHECK(more() == doctest::Approx(64 * 6 * swept.counts.total / (1e12 * efficiency().memory)));
  layout.zero = 2; // a rank adds up its own share
  CHECK(more() == doctest::Approx(0));
  layout.zero = 0, layout.microBatch = 64;
  CHECK(more() == doctest::Approx(0));
}

TEST_CASE("memory is what was measured: arXiv:2205.05198, figure 1") {
  struct Row {
    const char *model;
    int64_t pipeline, parts, microBatch;
    double states, activations; ///< GiB, with selective recompute
  };
  const Row rows[] = {
      {R"({"layers": 48, "width": 6144, "heads": 64, "ffn": 24576, "vocabulary": 51200, "gated": false, "tied": true})",
       1, 1, 4, 45.56, 9.56},
      {R"({"layers": 96, "width": 12288, "heads": 96, "ffn": 49152, "vocabulary": 51200, "gated": false, "tied": true})",
       8, 3, 1, 45.56, 12.35},
      {R"({"layers": 105, "width": 20480, "heads": 128, "ffn": 81920, "vocabulary": 51200, "gated": false, "tied": true})",
       35, 3, 1, 31.64, 23.08},
      {R"({"layers": 128, "width": 25600, "heads": 160, "ffn": 102400, "vocabulary": 51200, "gated": false, "tied": true})",
       64, 1, 1, 32.96, 26.56}};
  for (const Row &row : rows) {
    CAPTURE(row.model);
    CostProblem problem = ofFile(row.model);
    problem.batchTokens = 2048.0 * 512;
    problem.attention[0].kernel = AttentionKernel::materialised;
    Layout layout = layoutOf(8, row.pipeline, 1, 1);
    layout.virtualStages = row.parts;
    layout.microBatch = row.microBatch;
    layout.recompute = Recompute::selective;
    const MemoryUse use = memoryUse(problem, layout);
    const MemoryArray &full = use.bytes[size_t(Moment::warm)];
    const double states = std::accumulate(full.begin(), full.begin() + 3, 0.0) / kGiB;
    CHECK(states ==
          doctest::Approx(row.states).epsilon(0.09)); // there a mean of stages, here one with a matrix of words
    CHECK(full[size_t(MemoryItem::activations)] / kGiB == doctest::Approx(row.activations).epsilon(0.01));
  }
}

TEST_CASE("ZeRO divides optimizer, gradients and parameters by all replicas") {
  const CostProblem problem = problemOf(smallText(8, ""));
  Layout layout = layoutOf(1, 1, 2, 4);
  const double parameters = rankParameters(problem, layout).all();
  const auto bytes = [&](int64_t zero, MemoryItem item) {
    layout.zero = zero;
    return memoryUse(problem, layout).bytes[size_t(Moment::between)][size_t(item)];
  };
  CHECK(bytes(0, MemoryItem::optimizer) == doctest::Approx(12 * parameters));
  CHECK(bytes(1, MemoryItem::optimizer) == doctest::Approx(12 * parameters / 8));
  CHECK(bytes(1, MemoryItem::gradients) == doctest::Approx(4 * parameters));
  CHECK(bytes(2, MemoryItem::gradients) == doctest::Approx(4 * parameters / 8));
  CHECK(bytes(2, MemoryItem::parameters) == doctest::Approx(2 * parameters));
  CHECK(bytes(3, MemoryItem::parameters) == doctest::Approx(2 * parameters / 8));
}

TEST_CASE("a checkpoint each sqrt(2 d M), as Young has it, when failures are far apart") {
  CostProblem problem =
      problemOf(smallText(8, R"("failures": {"gpu_hours": 80000, "restart_minutes": 30, "checkpoint_gbps": 1},
    "prices": {"gpu_hour": 2}, "train_tokens": 1e12)"));
  const double checkpoint = problem.counts.total * 14 / 1e9, between = 10000 * 3600.0;
  const Outlook ahead = outlook(problem, layoutOf(8, 1, 1, 1), timed(problem, layoutOf(8, 1, 1, 1)));
  CHECK(ahead.goodput->failureHours == doctest::Approx(10000));
  CHECK(ahead.goodput->checkpointSeconds == doctest::Approx(checkpoint));
  const double interval = std::sqrt(2 * checkpoint * between);
  CHECK(ahead.goodput->intervalSeconds == doctest::Approx(interval).epsilon(0.001));
  CHECK(ahead.goodput->share == doctest::Approx(1 - checkpoint / interval - (interval / 2 + 1800) / between));
  CHECK(*ahead.days == doctest::Approx(1e12 / ahead.tokensPerSecond / ahead.goodput->share / 86400));
  CHECK(*ahead.money == doctest::Approx(*ahead.gpuHours * 2));
}

TEST_CASE("a ring whose other ranks hold all that a lost one held loses a step, not the time since a checkpoint") {
  const CostProblem problem = problemOf(smallText(
      8, R"("failures": {"gpu_hours": 800, "restart_minutes": 30, "ring_minutes": 1, "checkpoint_gbps": 1})"));
  Layout ring = layoutOf(1, 1, 8, 1);
  const StepTime step = timed(problem, ring);
  const Outlook goesOn = outlook(problem, ring, step);
  CHECK(goesOn.goodput->hasRings);
  const double between = 100 * 3600.0, checkpoint = goesOn.goodput->checkpointSeconds;
  CHECK(goesOn.goodput->share ==
        doctest::Approx(1 - checkpoint / goesOn.goodput->intervalSeconds - (60 + step.total + 1800.0 / 7) / between));
  ring.zero = 1; // states are divided: nobody else has those of the lost rank
  CHECK(!outlook(problem, ring, step).goodput->hasRings);
  CHECK(outlook(problem, ring, step).goodput->share < goesOn.goodput->share);
  CHECK(!outlook(problem, layoutOf(8, 1, 1, 1), step).goodput->hasRings);
}

TEST_CASE("what is hidden is what the same step would show without overlap") {
  const CostProblem problem = problemOf(smallText(16, R"("overlap": {"data": true, "tensor": true})"));
  const Layout layout = layoutOf(2, 1, 1, 8);
  CostProblem without = problem;
  without.overlap = {false, false, false, false, 0};
  const StepTime step = timed(problem, layout);
  const TimeArray hidden = hiddenTime(problem, layout, step);
  for (TimeItem item : {TimeItem::data, TimeItem::tensor})
    CHECK(hidden[size_t(item)] ==
          doctest::Approx(timeOf(timed(without, layout), item) - timeOf(step, item)).epsilon(1e-9));
  CHECK(hidden[size_t(TimeItem::data)] > 0);
  CHECK(hidden[size_t(TimeItem::products)] == 0);
}

TEST_CASE("every layout is possible or refused for one reason, and none that is shown lacks memory") {
  const CostProblem problem = problemOf(smallText(48, ""));
  const SearchResult found = search(problem, 20);
  int64_t refused = 0;
  for (const RefusalCount &refusal : found.refusals) {
    refused += refusal.count;
    CHECK(refusal.why.empty() == (refusal.count == 0));
  }
  CHECK(found.tried == found.possible + refused);
  CHECK(found.possible > 100);
  REQUIRE(found.best.size() == 20);
  for (size_t index = 0; index < found.best.size(); ++index) {
    CHECK(found.best[index].memory.peakBytes <= 80 * kGiB);
    CHECK((index == 0 || found.best[index].time.total >= found.best[index - 1].time.total));
    CHECK(timed(problem, found.best[index].layout).total == doctest::Approx(found.best[index].time.total));
  }
}

TEST_CASE("a reason says what does not divide, or how much memory is missing") {
  const CostProblem problem = problemOf(smallText(48, ""));
  std::string why;
  CHECK(*refusalOf(problem, layoutOf(3, 1, 1, 16), &why) == Refusal::heads);
  CHECK(why == "tensor 3 does not divide 8 heads (8 for k and v)");
  CHECK(*refusalOf(problem, layoutOf(8, 1, 1, 5), &why) == Refusal::gpus);
  CHECK(why == "tensor 8 x pipeline 1 x context 1 x data 5 are 40 ranks, not the 48 GPUs");
  CHECK(*refusalOf(problem, layoutOf(1, 1, 1, 48), &why) == Refusal::batch);
  CHECK(why == "data 48 x micro-batch 1 does not divide 64 sequences");
  Layout parts = layoutOf(4, 6, 1, 2);
  parts.virtualStages = 3;
  CHECK(*refusalOf(problem, parts, &why) == Refusal::layers);
  CostProblem tight = problem;
  tight.cluster.gpu.memoryGiB = 3.5;
  const SearchResult found = search(tight, 1);
  CHECK(found.refusals[size_t(Refusal::memory)].count > 0);
  CHECK(found.refusals[size_t(Refusal::memory)].why.find("GiB of 3.5") != std::string::npos);
}

TEST_CASE("rates that nobody measured are guesses that say what to tune") {
  const AttentionRate known = attentionRate({AttentionKernel::heddle, "causal", 128, 4000, "h200", 989.4});
  CHECK(!known.isGuess);
  CHECK(known.forward == 768);
  CHECK(known.backward == 640);
  const AttentionRate unknown = attentionRate({AttentionKernel::heddle, "my_pattern", 96, 4000, "a100", 312});
  CHECK(unknown.isGuess);
  CHECK(unknown.forward == doctest::Approx(0.65 * 312));
  CHECK(unknown.note.find("my_pattern, head dim 96 on ") != std::string::npos);
  const AttentionRate half = attentionRate({AttentionKernel::heddle, "longnet", 64, 1500, "h200", 989.4});
  CHECK(half.isGuess);
  CHECK(half.forward == 428);
  CHECK(half.note.find("backward") != std::string::npos);
}

TEST_CASE("what is wrong in a file is said with its place") {
  CHECK(messageOf("{").find("plan.json: expected a plan in JSON") == 0);
  CHECK(messageOf(replaced(smallText(8, ""), "\"layers\": 8", "\"layers\": 0")) ==
        "plan.json: model.layers: expected a whole number of at least 1, got 0");
  CHECK(messageOf(replaced(smallText(8, ""), "\"heads\": 8", "\"heads\": 7"))
            .find("plan.json: model: width 1024 is no multiple of 7 heads") != std::string::npos);
  CHECK(messageOf(replaced(smallText(8, ""), "\"width\"", "\"breadth\""))
            .find("plan.json: model: unknown key 'breadth'") != std::string::npos);
  CHECK(messageOf(replaced(smallText(16, ""), ", \"between\": {\"gbps\": 10}", ""))
            .find("plan.json: cluster: no links: give \"between\"") != std::string::npos);
  CHECK(messageOf(replaced(smallText(8, ""), "\"inside\": {\"gbps\": 100}, ", ""))
            .find("plan.json: cluster: no links: give \"inside\"") != std::string::npos);
  CHECK(messageOf(smallText(8, R"("precision": "fp8")"))
            .find("plan.json: precision: made up has no rate of fp8 products") != std::string::npos);
  CHECK(messageOf(smallText(8, R"("parallelism": {"zero": [1, 4]})"))
            .find("plan.json: parallelism: zero is 0, 1, 2 or 3, got 4") != std::string::npos);
  CHECK(messageOf(smallText(8, R"("context": 1024)")).find("the key 'context' is given twice") != std::string::npos);
  CHECK(messageOf(replaced(smallText(8, ""), "65536", "66000"))
            .find("batch_tokens 66000 are no multiple of the 1024 tokens of a sequence: take 65536 or 66560") !=
        std::string::npos);
  CHECK(messageOf(smallText(8, "", 0)).find("plan.json: batch_tokens: expected a number of at least 1") !=
        std::string::npos);
}

TEST_CASE("numbers that no search ends with are refused") {
  const std::string most = "expected a whole number of at most ";
  CHECK(messageOf(replaced(smallText(8, ""), "\"layers\": 8", "\"layers\": 10001")) ==
        "plan.json: model.layers: " + most + "10000, got 10001");
  CHECK(messageOf(smallText(2000000, "")) == "plan.json: cluster.gpus: " + most + "1048576, got 2000000");
  for (const std::string &key : std::vector<std::string>{"tensor", "pipeline", "virtual", "context"})
    CHECK(messageOf(smallText(8, "\"parallelism\": {\"" + key + "\": 1099511627776}")) ==
          "plan.json: parallelism." + key + ": " + most + "16384, got 1099511627776");
  for (const std::string &key : std::vector<std::string>{"data", "micro_batch", "expert"})
    CHECK(messageOf(smallText(8, "\"parallelism\": {\"" + key + "\": 1099511627776}")) ==
          "plan.json: parallelism." + key + ": " + most + "1048576, got 1099511627776");
  CHECK(messageOf(replaced(smallText(8, ""), "65536", "1e24")) ==
        "plan.json: batch_tokens: expected a number of at most 1e+18, got 1e+24");
}
