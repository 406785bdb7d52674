//===- runtime_stats_test.cpp - what a process says of itself ---------------===//
// Counters through the C interface, before and after what they count; the recording driver's events tell a time in which
// every call takes a microsecond.
#include "runtime/Core/Counters.h"
#include "runtime/Include/heddle_stats.h"
#include "runtime_fixture.h"

#include <atomic>
#include <thread>

using namespace heddle;
using namespace heddle::fake;
using test::ForwardCall;
using test::Session;

namespace {

heddle_stats statsNow() {
  heddle_stats stats = {};
  stats.struct_size = sizeof(stats);
  REQUIRE(heddle_stats_get(&stats) == HEDDLE_OK);
  return stats;
}

// Of the one kernel of these tests.
heddle_kernel_stats kernelNow() {
  heddle_kernel_stats stats = {};
  stats.struct_size = sizeof(stats);
  REQUIRE(heddle_stats_kernel(0, &stats) == HEDDLE_OK);
  return stats;
}

std::string metricsNow() {
  uint64_t bytes = 0;
  REQUIRE(heddle_stats_text(nullptr, 0, &bytes) == HEDDLE_OK);
  std::string text(bytes, '?');
  REQUIRE(heddle_stats_text(text.data(), text.size(), &bytes) == HEDDLE_OK);
  REQUIRE(bytes == text.size());
  REQUIRE(text.back() == '\0');
  text.pop_back();
  return text;
}

struct PreparedCall {
  heddle_prepared *handle = nullptr;
  PreparedCall(const Session &session, const ForwardCall &call) {
    REQUIRE_MESSAGE(heddle_prepare(session.kernel, &call.args, &handle) == HEDDLE_OK, heddle_last_message());
  }
  ~PreparedCall() { heddle_prepared_close(handle); }
  void launch(int times = 1, void *stream = nullptr) const {
    for (int i = 0; i < times; ++i)
      REQUIRE(heddle_prepared_launch(handle, stream) == HEDDLE_OK);
  }
};

// Samples are taken while this lives.
struct Sampling {
  explicit Sampling(uint32_t every) { REQUIRE(heddle_stats_sample(every) == HEDDLE_OK); }
  ~Sampling() { heddle_stats_sample(0); }
};

} // namespace

TEST_CASE("launches, pairs and how kernels were found are counted, and stay when a kernel is closed") {
  heddle_kernel_stats before = {};
  {
    const Session session;
    before = kernelNow();
    ForwardCall call;
    const PreparedCall prepared(session, call);
    REQUIRE(heddle_prepared_set_pairs(prepared.handle, 1000) == HEDDLE_OK);
    prepared.launch(3);
    REQUIRE(heddle_kernel_launch(session.kernel, nullptr, &call.args) == HEDDLE_OK);
    heddle_kernel *again = nullptr;
    const heddle_kernel_query query = test::causalQuery();
    REQUIRE(heddle_kernel_find(session.store, session.device, &query, &again) == HEDDLE_OK);
    heddle_kernel_close(again);
  }
  const heddle_kernel_stats after = kernelNow();
  CHECK(after.launches - before.launches == 4);
  CHECK(after.pairs - before.pairs == 3000);
  int64_t found = 0;
  for (int match = 0; match < 5; ++match)
    found += after.found[match] - before.found[match];
  CHECK(found == 1);
  CHECK(std::string(after.kernel) == "kernel-1");
  CHECK(std::string(after.pattern) == std::string(64, 'a'));
  CHECK(std::string(after.kind) == "forward");
  CHECK(std::string(after.device) == "Fake GPU");
  CHECK(std::string(after.bus).size() == 16);
  CHECK(statsNow().launches == after.launches);
  CHECK(statsNow().kernels == 1);
}

TEST_CASE("a launch that fails is a refusal and no launch") {
  const Session session;
  ForwardCall call;
  const heddle_stats before = statsNow();
  call.args.q.size[3] = 65;
  CHECK(heddle_kernel_launch(session.kernel, nullptr, &call.args) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_kernel_launch(session.kernel, nullptr, nullptr) == HEDDLE_INVALID_ARGUMENT);
  heddle_kernel *none = nullptr;
  heddle_kernel_query query = test::causalQuery();
  query.pattern = "no such pattern";
  CHECK(heddle_kernel_find(session.store, session.device, &query, &none) == HEDDLE_NOT_FOUND);
  const heddle_stats after = statsNow();
  CHECK(after.launches == before.launches);
  CHECK(after.refusals[HEDDLE_INVALID_ARGUMENT] - before.refusals[HEDDLE_INVALID_ARGUMENT] == 2);
  CHECK(after.refusals[HEDDLE_NOT_FOUND] - before.refusals[HEDDLE_NOT_FOUND] == 1);
  CHECK(after.refusals[HEDDLE_OK] == 0);
  CHECK(after.found[HEDDLE_MATCH_NONE] - before.found[HEDDLE_MATCH_NONE] == 1);
}

TEST_CASE("one in so many launches is timed on the GPU") {
  const Session session;
  ForwardCall call;
  const PreparedCall prepared(session, call);
  const heddle_kernel_stats before = kernelNow();
  prepared.launch(10);
  CHECK(kernelNow().samples == before.samples);
  {
    const Sampling sampling(4);
    prepared.launch(40);
    for (int i = 0; i < 8; ++i)
      REQUIRE(heddle_kernel_launch(session.kernel, nullptr, &call.args) == HEDDLE_OK);
  }
  prepared.launch(10);
  const heddle_kernel_stats after = kernelNow();
  CHECK(after.launches - before.launches == 68);
  CHECK(after.samples - before.samples == 12);
  const double microseconds = (after.sample_seconds - before.sample_seconds) * 1e6;
  CHECK(microseconds > 12 * 0.9);
  CHECK(microseconds < 12 * 20);
}

TEST_CASE("of short launches no more are timed than take half a percent; of long ones one in 64 is") {
  const Session session;
  ForwardCall call;
  const PreparedCall prepared(session, call);
  constexpr int kLaunches = 64 * 200;
  auto timedOf = [&](int microseconds) {
    fakeCudaSetLaunchUs(microseconds);
    const Sampling sampling(64);
    const heddle_kernel_stats before = kernelNow();
    prepared.launch(kLaunches);
    return double(kernelNow().samples - before.samples);
  };
  // Of launches of 8 us and less.
  auto isWithinHalfAPercent = [](double samples) { return samples > 0 && samples < 150; };
  const double timed = timedOf(4), mean = kernelNow().sample_seconds / double(kernelNow().samples);
  CHECK(mean < 10e-6);
  CHECK(timed * 3.6e-6 <= 0.005 * kLaunches * mean * 1.05);
  CHECK(isWithinHalfAPercent(timed));
  CHECK(timedOf(100'000) >= 198); // the first ones are still taken for short
  CHECK(isWithinHalfAPercent(timedOf(4)));
  fakeCudaSetLaunchUs(0);
}

TEST_CASE("times that are not known yet are waited for by nobody, and are lost beyond 16") {
  const Session session;
  ForwardCall call;
  const PreparedCall prepared(session, call);
  void *held = fakeCudaHold(nullptr);
  const heddle_stats before = statsNow();
  {
    const Sampling sampling(1);
    prepared.launch(20);
  }
  CHECK(statsNow().samples == before.samples);
  CHECK(statsNow().lost_samples - before.lost_samples == 4);
  fakeCudaRelease(held);
  CHECK(statsNow().samples - before.samples == 16);
}

TEST_CASE("a launch that fails while samples are taken leaves no time behind") {
  const Session session;
  ForwardCall call;
  const PreparedCall prepared(session, call);
  const heddle_stats before = statsNow();
  const Sampling sampling(1);
  for (const char *symbol : {"cuEventCreate", "cuEventRecord"}) {
    fakeCudaFail(symbol, 1, 0);
    prepared.launch(5);
    fakeCudaReset();
  }
  for (const char *symbol : {"cuLaunchKernel", "cuGraphLaunch"})
    fakeCudaFail(symbol, 700, 0);
  for (int i = 0; i < 20; ++i)
    CHECK(heddle_prepared_launch(prepared.handle, nullptr) == HEDDLE_INTERNAL);
  fakeCudaReset();
  CHECK(statsNow().samples == before.samples);
  prepared.launch(16);
  CHECK(statsNow().samples - before.samples == 16);
}

TEST_CASE("the workspace of prepared calls counts until they are closed") {
  const Session session;
  const heddle_stats before = statsNow();
  ForwardCall call;
  {
    const PreparedCall prepared(session, call);
  }
  CHECK(statsNow().workspace_bytes == before.workspace_bytes); // this kernel needs none
  Level level;
  level.add(100), level.touch(50), level.add(20), level.take(100);
  CHECK(level.get() == 20);
  CHECK(level.highest() == 150);
}

TEST_CASE("threads lose no count") {
  const Session session;
  ForwardCall call;
  const PreparedCall prepared(session, call);
  const Sampling sampling(2);
  const heddle_stats before = statsNow();
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int launch = 0; launch < 500; ++launch)
        failed += heddle_prepared_launch(prepared.handle, nullptr) != HEDDLE_OK;
    });
  for (std::thread &thread : threads)
    thread.join();
  const heddle_stats after = statsNow();
  CHECK(failed == 0);
  CHECK(after.launches - before.launches == 2000);
  CHECK(after.samples + after.lost_samples - before.samples - before.lost_samples == 1000);
}

TEST_CASE("the text fits or is not written, and its lines are those of the counters") {
  const Session session;
  const std::string text = metricsNow();
  std::string shorter(text.size(), '?');
  uint64_t bytes = 0;
  CHECK(heddle_stats_text(shorter.data(), shorter.size(), &bytes) == HEDDLE_OK);
  CHECK(shorter == std::string(text.size(), '?'));
  const heddle_kernel_stats kernel = kernelNow();
  const std::string labels = "{kernel=\"kernel-1\",pattern=\"" + std::string(64, 'a') +
                             "\",kind=\"forward\",device=\"Fake GPU\",bus=\"" + kernel.bus + "\"} ";
  CHECK(text.find("\nheddle_launches_total" + labels + std::to_string(kernel.launches) + "\n") != std::string::npos);
  CHECK(text.find("\nheddle_kernel_seconds_count" + labels + std::to_string(kernel.samples) + "\n") !=
        std::string::npos);
  CHECK(text.substr(text.size() - 7) == "\n# EOF\n");
}

namespace {

// What a listener was told.
struct Told {
  int times = 0;
  heddle_drift last = {};
  static void listen(void *user, const heddle_drift *drift) {
    Told &told = *static_cast<Told *>(user);
    ++told.times, told.last = *drift;
  }
};

// A store of one kernel, tuned for the calls of ForwardCall, with this time.
std::string makeTunedStore(const test::ScratchFolder &folder, double medianUs) {
  const std::string path = folder / "tuned.db";
  Store store = test::openStore(path, test::writing());
  const KernelRecord record = test::forwardRecord("tuned-" + std::to_string(int(medianUs)));
  Winner winner = test::someWinner(record, {0, 3, 2, 9}, {"Fake GPU", "sm_90", 132, 140});
  static_cast<ExactProblem &>(winner) = {2, 8, 4, 1000, 3000, 0, 0, "512 -3"};
  winner.isTuned = 1;
  winner.medianUs = medianUs;
  test::require(store.publish(record, winner));
  test::require(store.setName({"causal", record.pattern, "left right", 0}));
  test::require(store.finalise());
  return path;
}

struct TunedSession {
  test::ScratchFolder folder;
  heddle_store *store = nullptr;
  heddle_device *device = nullptr;
  heddle_kernel *kernel = nullptr;
  explicit TunedSession(double medianUs) {
    test::startFake();
    REQUIRE(heddle_store_open(makeTunedStore(folder, medianUs).c_str(), 0, &store) == HEDDLE_OK);
    REQUIRE(heddle_device_open(0, &device) == HEDDLE_OK);
    heddle_kernel_query query = test::causalQuery();
    query.tiles_per_row = 8;
    REQUIRE_MESSAGE(heddle_kernel_find(store, device, &query, &kernel) == HEDDLE_OK, heddle_last_message());
    heddle_kernel_info info = {};
    info.struct_size = sizeof(info);
    REQUIRE(heddle_kernel_get_info(kernel, &info) == HEDDLE_OK);
    REQUIRE(info.match == HEDDLE_MATCH_EXACT);
  }
  ~TunedSession() {
    heddle_stats_on_drift(nullptr, nullptr);
    heddle_kernel_close(kernel);
    heddle_device_close(device);
    heddle_store_close(store);
  }
};

heddle_drift slowNow(int32_t index = 0) {
  heddle_drift drift = {};
  drift.struct_size = sizeof(drift);
  REQUIRE_MESSAGE(heddle_stats_drift(index, &drift) == HEDDLE_OK, heddle_last_message());
  return drift;
}

bool isSlowNow() {
  heddle_drift drift = {};
  drift.struct_size = sizeof(drift);
  return heddle_stats_drift(0, &drift) == HEDDLE_OK;
}

} // namespace

TEST_CASE("a kernel that becomes slower than its stored time is reported, once, until it is as fast again") {
  const TunedSession session(1000);
  ForwardCall call;
  Told told;
  REQUIRE(heddle_stats_on_drift(Told::listen, &told) == HEDDLE_OK);
  heddle_prepared *prepared = nullptr;
  REQUIRE(heddle_prepare(session.kernel, &call.args, &prepared) == HEDDLE_OK);
  const Sampling sampling(1);
  auto launch = [&](int us, int times) {
    fakeCudaSetLaunchUs(us);
    for (int i = 0; i < times; ++i)
      REQUIRE(heddle_prepared_launch(prepared, nullptr) == HEDDLE_OK);
    statsNow();
  };
  const heddle_stats before = statsNow();
  launch(990, 200);
  CHECK(told.times == 0);
  CHECK(!isSlowNow());
  CHECK(statsNow().refusals[HEDDLE_NOT_FOUND] == before.refusals[HEDDLE_NOT_FOUND]); // the end of a list is none
  launch(1290, 40);
  REQUIRE(told.times == 1);
  CHECK(std::string(told.last.kernel) == "tuned-1000");
  CHECK(std::string(told.last.device) == "Fake GPU");
  CHECK(std::string(told.last.problem) == "2x8[4]x1000x3000 (512 -3)");
  CHECK(told.last.expected_us == 1000);
  CHECK(told.last.factor == doctest::Approx(1.29).epsilon(0.01));
  CHECK(told.last.samples == 30);
  CHECK(slowNow().median_us == told.last.median_us);
  const std::string text = metricsNow();
  CHECK(text.find("heddle_drift_ratio{kernel=\"tuned-1000\"") != std::string::npos);
  launch(1290, 100);
  CHECK(told.times == 1);
  launch(990, 200);
  CHECK(!isSlowNow());
  CHECK(statsNow().drifts - before.drifts == 1);
  heddle_prepared_close(prepared);
}

TEST_CASE("calls of other sizes than those that a time is stored of are not compared") {
  const TunedSession session(2000);
  Told told;
  REQUIRE(heddle_stats_on_drift(Told::listen, &told) == HEDDLE_OK);
  const Sampling sampling(1);
  fakeCudaSetLaunchUs(5000);
  for (int which = 0; which < 4; ++which) {
    ForwardCall call;
    call.operands[0].value.i64 += which == 0;
    call.args.k_origin = which == 1;
    if (which == 2)
      call.args.q.size[1] = call.args.out.size[1] = 999;
    for (int i = 0; i < 50; ++i)
      REQUIRE_MESSAGE(heddle_kernel_launch(session.kernel, nullptr, &call.args) == HEDDLE_OK, heddle_last_message());
    statsNow();
    CHECK(told.times == (which == 3)); // only the last ones are of those sizes
  }
}

TEST_CASE("[2] [5] what is wrong with a question is said") {
  heddle_stats stats = {};
  CHECK(heddle_stats_get(nullptr) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_stats_get(&stats) == HEDDLE_INVALID_ARGUMENT);
  CHECK(test::lastMessageHas("struct_size"));
  heddle_kernel_stats kernel = {};
  kernel.struct_size = sizeof(kernel);
  CHECK(heddle_stats_kernel(-1, &kernel) == HEDDLE_NOT_FOUND);
  CHECK(heddle_stats_kernel(1024, &kernel) == HEDDLE_NOT_FOUND);
  CHECK(heddle_stats_kernel(0, nullptr) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_stats_text(nullptr, 0, nullptr) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_stats_text(nullptr, 8, nullptr) == HEDDLE_INVALID_ARGUMENT);
  CHECK(heddle_prepared_set_pairs(nullptr, 1) == HEDDLE_INVALID_ARGUMENT);
  const Session session;
  ForwardCall call;
  const PreparedCall prepared(session, call);
  CHECK(heddle_prepared_set_pairs(prepared.handle, -1) == HEDDLE_INVALID_ARGUMENT);
}
