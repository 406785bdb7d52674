//===- lookup.cpp - what finding a kernel costs ---------------------------===//
// Makes a database of many kernels and times the C interface on it: finding a kernel that is already open ("hot"), and
// opening the database and finding one for the first time ("cold", with the file gone from the page cache and with it
// there). A recording driver in HEDDLE_CUDA_DRIVER_LIBRARY keeps module loads out of it. Prints one JSON line; exit
// code 1 if a median is above --hot-limit-ns or --cold-limit-us.
//===----------------------------------------------------------------------===//
#include "runtime/Core/LaunchPlan.h"
#include "runtime/Device/Device.h"
#include "runtime/Include/heddle.h"
#include "runtime/Store/Store.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

using namespace heddle;

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int64_t patterns = 100, bucketsOfEach = 8, cubinKb = 90, coldRuns = 21, hotRuns = 21;
  int64_t hotLimitNs = 0, coldLimitUs = 0; // 0: none
};

Status parse(int argc, char **argv, Options &options) {
  const std::pair<const char *, int64_t *> known[] = {
      {"--patterns=", &options.patterns},        {"--buckets=", &options.bucketsOfEach},
      {"--cubin-kb=", &options.cubinKb},         {"--cold-runs=", &options.coldRuns},
      {"--hot-runs=", &options.hotRuns},         {"--hot-limit-ns=", &options.hotLimitNs},
      {"--cold-limit-us=", &options.coldLimitUs}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    bool isKnown = false;
    for (auto [name, value] : known)
      if (argument.rfind(name, 0) == 0) {
        *value = std::atoll(argument.c_str() + std::string(name).size());
        isKnown = *value > 0;
      }
    if (!isKnown)
      return Status::invalidArgument(
          "expected --NAME=N with N > 0, NAME of patterns, buckets, cubin-kb, cold-runs, hot-runs, "
          "hot-limit-ns, cold-limit-us; got '" +
          argument + "'");
  }
  return {};
}

std::string digestOf(int64_t pattern) {
  char text[65];
  std::snprintf(text, sizeof text, "%064llx", static_cast<long long>(pattern + 1));
  return text;
}

std::string nameOf(int64_t pattern) { return "pattern_" + std::to_string(pattern); }

KernelRecord recordOf(const Options &options, int64_t pattern, int64_t bucket) {
  KernelRecord record;
  record.pattern = digestOf(pattern);
  record.headDim = record.valueDim = 128;
  record.generator = "bench";
  record.contentKey = nameOf(pattern) + "/" + std::to_string(bucket);
  record.kernelArch = "sm_90";
  LaunchPlan plan{PlanService("forward")};
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.block = 128;
  launch.appendPointer(Role::q);
  record.plan = plan.str();
  record.cubin = "\x7f"
                 "ELF";
  // nothing a file system could leave out
  for (uint32_t bits = 1; record.cubin.size() < size_t(options.cubinKb) * 1024;)
    record.cubin.push_back(char((bits = bits * 1664525u + 1013904223u) >> 24));
  record.ptx = "// ptx";
  return record;
}

/// Every pattern tuned for every bucket, fit to ship.
Status makeDatabase(const Options &options, const DeviceIdentity &device, const std::string &path) {
  const std::string draft = path + ".draft";
  StoreOptions writing;
  writing.mode = StoreMode::readWrite;
  HEDDLE_ASSIGN(Store store, Store::open(draft, writing));
  for (int64_t pattern = 0; pattern < options.patterns; ++pattern) {
    for (int64_t bucket = 0; bucket < options.bucketsOfEach; ++bucket) {
      const KernelRecord record = recordOf(options, pattern, bucket);
      Winner winner;
      static_cast<WinnerKey &>(winner) = WinnerKey(record, {bucket, 3, 1}, device);
      winner.contentKey = record.contentKey;
      winner.isTuned = 1;
      winner.medianUs = 10;
      HEDDLE_TRY(store.publish(record, winner));
    }
    HEDDLE_TRY(store.setName({nameOf(pattern), digestOf(pattern), "", 0}));
  }
  return store.exportTo(path, {}).status();
}

heddle_kernel_query queryOf(const std::string &name) {
  heddle_kernel_query query = {};
  query.struct_size = sizeof(query);
  query.dtype = HEDDLE_BF16;
  query.pattern = name.c_str();
  query.head_dim = query.value_dim = 128;
  query.batch = 2, query.heads = query.kv_heads = 16, query.seqlen_q = 8192;
  return query;
}

/// Handles of the C interface, closed at the end.
struct Handles {
  heddle_store *store = nullptr;
  heddle_device *device = nullptr;
  heddle_kernel *kernel = nullptr;
  ~Handles() {
    heddle_kernel_close(kernel);
    heddle_device_close(device);
    heddle_store_close(store);
  }
};

Status said(heddle_status status) {
  return status == HEDDLE_OK ? Status() : Status(StatusCode(status), heddle_last_message());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double microsecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// The next read of the file comes from its disk, where the file system lets go of it.
void dropFromCache(const std::string &path) {
  const int file = open(path.c_str(), O_RDONLY);
  if (file < 0)
    return;
  fdatasync(file);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
}

/// Of a database that this process has not open, the time until its kernel is.
Result<double> coldUs(const Options &options, const std::string &path, uint32_t flags, bool isOnDisk) {
  std::vector<double> times;
  for (int64_t run = 0; run < options.coldRuns; ++run) {
    Handles handles;
    HEDDLE_TRY(said(heddle_device_open(0, &handles.device)));
    const std::string name = nameOf(run % options.patterns);
    const heddle_kernel_query query = queryOf(name);
    if (isOnDisk)
      dropFromCache(path);
    const Clock::time_point begin = Clock::now();
    HEDDLE_TRY(said(heddle_store_open(path.c_str(), flags, &handles.store)));
    HEDDLE_TRY(said(heddle_kernel_find(handles.store, handles.device, &query, &handles.kernel)));
    times.push_back(microsecondsSince(begin));
  }
  return median(times);
}

/// Of one find and close, with `open` kernels held.
Result<double> hotNs(const Options &options, const std::string &path, int64_t open) {
  constexpr int64_t kFinds = 20000;
  Handles handles;
  std::vector<Handles> held(open);
  HEDDLE_TRY(said(heddle_device_open(0, &handles.device)));
  HEDDLE_TRY(said(heddle_store_open(path.c_str(), 0, &handles.store)));
  for (int64_t pattern = 0; pattern < open; ++pattern) {
    const std::string name = nameOf(pattern);
    const heddle_kernel_query query = queryOf(name);
    HEDDLE_TRY(said(heddle_kernel_find(handles.store, handles.device, &query, &held[pattern].kernel)));
  }
  const std::string name = nameOf(open / 2);
  const heddle_kernel_query query = queryOf(name);
  std::vector<double> times;
  for (int64_t run = 0; run < options.hotRuns; ++run) {
    const Clock::time_point begin = Clock::now();
    for (int64_t i = 0; i < kFinds; ++i) {
      heddle_kernel *kernel = nullptr;
      HEDDLE_TRY(said(heddle_kernel_find(handles.store, handles.device, &query, &kernel)));
      heddle_kernel_close(kernel);
    }
    times.push_back(microsecondsSince(begin) * 1000 / kFinds);
  }
  return median(times);
}

Result<bool> measure(const Options &options, const std::string &folder) {
  const std::string path = folder + "/kernels.db";
  HEDDLE_ASSIGN(Device device, Device::open(0));
  HEDDLE_TRY(makeDatabase(options, device.info().identity, path));
  HEDDLE_ASSIGN(double onDisk, coldUs(options, path, 0, true));
  HEDDLE_ASSIGN(double cached, coldUs(options, path, 0, false));
  HEDDLE_ASSIGN(double immutable, coldUs(options, path, HEDDLE_OPEN_IMMUTABLE, false));
  HEDDLE_ASSIGN(double hot, hotNs(options, path, 1));
  HEDDLE_ASSIGN(double hotOfMany, hotNs(options, path, std::min<int64_t>(options.patterns, 100)));
  const bool isHotGood = options.hotLimitNs == 0 || std::max(hot, hotOfMany) <= options.hotLimitNs;
  const bool isColdGood = options.coldLimitUs == 0 || std::max({onDisk, cached, immutable}) <= options.coldLimitUs;
  std::printf("{\"kernels\": %lld, \"database_mb\": %.1f, \"hot_ns\": %.0f, \"hot_of_many_ns\": %.0f, "
              "\"cold_on_disk_us\": %.0f, "
              "\"cold_cached_us\": %.0f, \"cold_immutable_us\": %.0f, \"within_limits\": %s}\n",
              static_cast<long long>(options.patterns * options.bucketsOfEach), std::filesystem::file_size(path) / 1e6,
              hot, hotOfMany, onDisk, cached, immutable, isHotGood && isColdGood ? "true" : "false");
  return isHotGood && isColdGood;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  if (Status status = parse(argc, argv, options); !status.isOk()) {
    std::fprintf(stderr, "heddle-lookup: error: %s\n", status.message().c_str());
    return 2;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "heddle_lookup_XXXXXX").string();
  if (!mkdtemp(folder.data())) {
    std::fprintf(stderr, "heddle-lookup: error: cannot make a folder in the temporary one\n");
    return 3;
  }
  Result<bool> isGood = measure(options, folder);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (isGood)
    return *isGood ? 0 : 1;
  std::fprintf(stderr, "heddle-lookup: error: %s\n", isGood.status().message().c_str());
  return 3;
}
