//===- counter_cost.cpp - heddle-counter-cost -------------------------------===//
// heddle-counter-cost --db=FILE [--sizes=N,N] [--head-dim=N] [--heads=N] [--rounds=N] [--us=N] [--times=N]: what launches of a prepared call
// take without timed ones and with one in 64 timed, for calls of several lengths, from the first launch of a batch until the GPU
// has done all of them. Batches of both kinds take turns and last about --us microseconds. Prints a line for each length: rows,
// microseconds of a launch without and with, the price in percent, of how many launches one was timed; and "host", the
// microseconds of the host for a launch.
// --times=N prints N times of timed launches instead, one in 4 of a call of the first length, for tests of drift.
// heddle-counter-cost-uncounted is the same program with launches that count nothing.
//===----------------------------------------------------------------------===//
#include "bench/host/Scene.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace hostcost;

namespace {

constexpr uint32_t kEvery = 64;

struct Batches {
  std::vector<double> plain, sampled; // microseconds of a launch
  double launchesOfSample = 0;
};

struct Samples {
  int64_t count = 0;
  double seconds = 0;
};

Result<Samples> samples() {
  heddle_kernel_stats row = {};
  row.struct_size = sizeof(row);
  const heddle_stats all = api::stats();
  Samples total;
  for (int32_t i = 0; i < all.kernels; ++i) {
    if (heddle_stats_kernel(i, &row) != HEDDLE_OK)
      return Status::internal(heddle_last_message());
    total.count += row.samples;
    total.seconds += row.sample_seconds;
  }
  return total;
}

Result<double> batch(const Scene &scene, const Call &call, const DeviceStream &stream, int64_t launches, bool waits) {
  const Clock::time_point begin = Clock::now();
  for (int64_t i = 0; i < launches; ++i)
    if (heddle_prepared_launch(call.prepared.get(), stream.handle()) != HEDDLE_OK)
      return Status::internal(heddle_last_message());
  const double host = microsecondsSince(begin);
  HEDDLE_TRY(scene.device.synchronize(stream.handle()));
  return (waits ? microsecondsSince(begin) : host) / double(launches);
}

// As many launches as take so long.
Result<int64_t> launchesOf(const Scene &scene, const Call &call, const DeviceStream &stream, double us) {
  HEDDLE_ASSIGN(const double first, batch(scene, call, stream, 50, true));
  static_cast<void>(first); // warms up
  HEDDLE_ASSIGN(const double once, batch(scene, call, stream, 50, true));
  return std::clamp<int64_t>(int64_t(us / std::max(once, 0.1)), 4 * kEvery, 1 << 18);
}

Result<Batches> measure(const Scene &scene, int64_t rows, double us) {
  HEDDLE_ASSIGN(Tensors tensors, Tensors::allocate(scene, rows, false));
  HEDDLE_ASSIGN(const Call call, Call::prepare(scene, tensors.arguments(rows)));
  HEDDLE_ASSIGN(const DeviceStream stream, DeviceStream::create(scene.device));
  HEDDLE_ASSIGN(const int64_t launches, launchesOf(scene, call, stream, us));
  HEDDLE_ASSIGN(const Samples before, samples());
  Batches batches;
  for (int64_t round = 0; round < 2 * scene.options.rounds; ++round) {
    const bool isSampled = (round + round / 2) % 2; // plain, sampled, sampled, plain: drifts of clocks cancel
    heddle_stats_sample(isSampled ? kEvery : 0);
    HEDDLE_ASSIGN(const double each, batch(scene, call, stream, launches, true));
    (isSampled ? batches.sampled : batches.plain).push_back(each);
  }
  heddle_stats_sample(0);
  HEDDLE_ASSIGN(const Samples after, samples());
  batches.launchesOfSample =
      double(launches) * double(batches.sampled.size()) / double(std::max<int64_t>(after.count - before.count, 1));
  HEDDLE_ASSIGN(const bool isRight, tensors.isOne(rows, 0));
  return isRight ? Result<Batches>(batches) : Result<Batches>(Status::internal("out is not 1 where v is"));
}

// Short batches that the driver's queue takes, so that no launch waits for the GPU.
Result<double> hostUs(const Scene &scene) {
  constexpr int64_t kRows = 16, kLaunches = 200;
  HEDDLE_ASSIGN(Tensors tensors, Tensors::allocate(scene, kRows, false));
  HEDDLE_ASSIGN(const Call call, Call::prepare(scene, tensors.arguments(kRows)));
  HEDDLE_ASSIGN(const DeviceStream stream, DeviceStream::create(scene.device));
  std::vector<double> times;
  for (int64_t round = 0; round < 20 * scene.options.rounds; ++round) {
    HEDDLE_ASSIGN(const double each, batch(scene, call, stream, kLaunches, false));
    times.push_back(each);
  }
  return median(times);
}

Status printTimes(const Options &options, int64_t rows, int64_t count) {
  constexpr int64_t kTimedEvery = 4;
  FirstCall first;
  HEDDLE_ASSIGN(const Scene scene, openScene(options, first));
  HEDDLE_ASSIGN(Tensors tensors, Tensors::allocate(scene, rows, true));
  HEDDLE_ASSIGN(const Call call, Call::prepare(scene, tensors.arguments(rows)));
  HEDDLE_ASSIGN(const DeviceStream stream, DeviceStream::create(scene.device));
  std::printf("# %s, %lld rows, us of every fourth launch\n", scene.device.info().identity.deviceName.c_str(),
              static_cast<long long>(rows));
  HEDDLE_TRY(batch(scene, call, stream, 1000, true).status());
  heddle_stats_sample(kTimedEvery);
  HEDDLE_ASSIGN(Samples before, samples());
  for (int64_t i = 0; i < count; ++i) {
    HEDDLE_TRY(batch(scene, call, stream, kTimedEvery, true).status());
    HEDDLE_ASSIGN(const Samples now, samples());
    std::printf("%.2f\n", (now.seconds - before.seconds) * 1e6);
    before = now;
  }
  heddle_stats_sample(0);
  return {};
}

Status report(const Options &options, const std::vector<int64_t> &lengths, double us) {
  FirstCall first;
  HEDDLE_ASSIGN(const Scene scene, openScene(options, first));
  for (int64_t rows : lengths) {
    HEDDLE_ASSIGN(const Batches batches, measure(scene, rows, us));
    const double plain = median(batches.plain), sampled = median(batches.sampled);
    std::printf("%lld %.3f %.3f %+.3f %.0f\n", static_cast<long long>(rows), plain, sampled,
                100 * (sampled / plain - 1), batches.launchesOfSample);
  }
  HEDDLE_ASSIGN(const double host, hostUs(scene));
  std::printf("host %.4f\n", host);
  return {};
}

std::vector<int64_t> numbersIn(const char *text) {
  std::vector<int64_t> numbers;
  for (; *text; text += std::strcspn(text, ","), text += *text == ',')
    numbers.push_back(std::atoll(text));
  return numbers;
}

int complain(const std::string &what, int code) {
  return std::fprintf(stderr, "heddle-counter-cost: error: %s\n", what.c_str()), code;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  options.rounds = 11;
  double us = 200000;
  int64_t times = 0;
  std::vector<int64_t> lengths = {16, 1024, 4096, 16384};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const char *value = equals == std::string::npos ? "" : argv[i] + equals + 1;
    const bool isText = name == "--db" || name == "--sizes" || name == "--rows";
    if (!isText && std::atoll(value) < 1)
      return complain("'" + argument + "': expected a number above 0", 2);
    if (name == "--db")
      options.database = value;
    else if (name == "--sizes")
      options.sizes = numbersIn(value);
    else if (name == "--rows")
      lengths = numbersIn(value);
    else if (name == "--head-dim")
      options.headDim = std::atoll(value);
    else if (name == "--heads")
      options.heads = std::atoll(value);
    else if (name == "--rounds")
      options.rounds = std::atoll(value);
    else if (name == "--times")
      times = std::atoll(value);
    else if (name == "--us")
      us = double(std::atoll(value));
    else
      return complain("no option '" + argument +
                          "'; there are --db, --sizes, --rows, --head-dim, --heads, --rounds, --us, --times",
                      2);
  }
  if (options.database.empty())
    return complain("expected --db=FILE, a database or a package", 2);
  const Status status = times > 0 ? printTimes(options, lengths[0], times) : report(options, lengths, us);
  return status.isOk() ? 0 : complain(status.message(), 1);
}
