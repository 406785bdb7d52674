// Owns the value types that cross between compiler, tuner, store and device. Each struct has one
// field list; SQL columns, text and digests are derived from it. Appending a field changes the SQL
// schema: append it in runtime/Store/schema.sql and bump the version in StoreImpl.h.
#pragma once

#include "runtime/Core/CallShape.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

// What a kernel computes. `pattern` is the digest of the canonical pattern text.
struct KernelFamily {
  std::string pattern;
  std::string kind = "forward"; // KindText
  DType dtype = kDefaultDType;
  int64_t headDim = 0;
  int64_t valueDim = 0;
  std::string generator; // version of the code generator that wrote the kernel

  static KernelFamily of(std::string pattern, const CallShape &shape, std::string generator);
  // unsupported: of a kind that is not known.
  Result<CallShape> shape() const;

  template <class F> static void fields(F &&f) {
    f("pattern", &KernelFamily::pattern);
    f("kind", &KernelFamily::kind);
    f("dtype", &KernelFamily::dtype);
    f("head_dim", &KernelFamily::headDim);
    f("value_dim", &KernelFamily::valueDim);
    f("generator", &KernelFamily::generator);
  }
};

// The shape of a problem as far as it decides which schedule wins: never the raw length. All but the ratio,
// heads / kv heads, are logarithmic buckets (sizeBucket).
struct ProblemBucket {
  int64_t workPerSm = 0;   // work items (CTAs of work) per SM
  int64_t tilesPerRow = 0; // mean visited key tiles per query tile
  int64_t gqaRatio = 1;
  int64_t queryRows = 0; // of a head (rowsBucket): few leave tiles empty, as decode does

  // Counts are of tiles of kTile x kTile, so that a bucket does not depend on the configuration.
  static constexpr int64_t kTile = 128, kManyRows = 512;
  // So many rows of a head that keep values pay for turning these over once (CallShape::hasValuesToTurn).
  static constexpr int64_t kTurnedRows = 8192;
  // From so many on rows are as many as any number: kTurnedRows where that decides, else kManyRows.
  static int64_t mostRows(const CallShape &call);
  // Counts of rows that have one default, and of few rows those of one power of 2, have one bucket.
  static int64_t rowsBucket(int64_t queryRows, const CallShape &call);
  // The rows that a default for calls of so many queries is filed under: 64, 128, 256, kManyRows or mostRows; 0 queries:
  // any number.
  static int64_t rowsOfDefault(int64_t queries, const CallShape &call);
  // Buckets of rows on one side of kTurnedRows: what a search found on the other is worth less than a default. A negative
  // bucket is unknown, and may be any.
  static bool areAsLong(int64_t rows, int64_t others);
  static ProblemBucket of(int64_t workItems, int64_t smCount, int64_t visitedTiles, int64_t gqaRatio,
                          int64_t rowsBucket);

  template <class F> static void fields(F &&f) {
    f("work_per_sm", &ProblemBucket::workPerSm);
    f("tiles_per_row", &ProblemBucket::tilesPerRow);
    f("gqa_ratio", &ProblemBucket::gqaRatio);
    f("query_rows", &ProblemBucket::queryRows);
  }
};

// The call that times are of: they say nothing of another one, also in the same bucket. Of a query, 0 is unknown; of an
// untuned default, all is.
struct ExactProblem {
  int64_t batch = 0, heads = 0, kvHeads = 0, seqlenQ = 0, seqlenK = 0;
  int64_t qOrigin = 0, kOrigin = 0;
  // Of the pattern: values in their order, then "<argument>:<digest>" of each tensor of integers.
  std::string arguments = {};

  // "2x32[8]x8192 (1023)": batch, heads [kv heads], seqlen_q, seqlen_k if it is another, and in parentheses the
  // arguments.
  std::string str() const;

  template <class F> static void fields(F &&f) {
    f("batch", &ExactProblem::batch);
    f("heads", &ExactProblem::heads);
    f("kv_heads", &ExactProblem::kvHeads);
    f("seqlen_q", &ExactProblem::seqlenQ);
    f("seqlen_k", &ExactProblem::seqlenK);
    f("q_origin", &ExactProblem::qOrigin);
    f("k_origin", &ExactProblem::kOrigin);
    f("arguments", &ExactProblem::arguments);
  }
};

// The number of doublings from 1 to at least numerator / denominator: 0 up to 1, 1 up to 2, 2 up to 4.
int64_t sizeBucket(int64_t numerator, int64_t denominator);

// A GPU as far as tuning results depend on it. Memory in whole GiB, rounded to nearest.
struct DeviceIdentity {
  std::string deviceName;
  std::string arch; // "sm_90"
  int64_t smCount = 0;
  int64_t memoryGib = 0;

  template <class F> static void fields(F &&f) {
    f("device_name", &DeviceIdentity::deviceName);
    f("arch", &DeviceIdentity::arch);
    f("sm_count", &DeviceIdentity::smCount);
    f("memory_gib", &DeviceIdentity::memoryGib);
  }
};

// What a winner is filed under and looked up by.
struct WinnerKey : KernelFamily, ProblemBucket, ExactProblem, DeviceIdentity {
  WinnerKey() = default;
  WinnerKey(KernelFamily family, ProblemBucket bucket, DeviceIdentity device, ExactProblem problem = {})
      : KernelFamily(std::move(family)), ProblemBucket(bucket), ExactProblem(std::move(problem)),
        DeviceIdentity(std::move(device)) {}

  template <class F> static void fields(F &&f) {
    KernelFamily::fields(f);
    ProblemBucket::fields(f);
    ExactProblem::fields(f);
    DeviceIdentity::fields(f);
  }
};

// One compiled kernel. `contentKey` is the digest of source, headers, options, NVRTC version and arch of its codes and
// of its launch plan (KernelImages.h); it decides correctness, so equal keys mean interchangeable kernels.
struct KernelRecord : KernelFamily {
  std::string contentKey;
  std::string kernelArch;  // what it was compiled for: "sm_90a", "compute_80" for PTX only
  int64_t minDriver = 0;   // as cuDriverGetVersion counts: 12040 is CUDA 12.4; 0 unknown
  std::string config;      // canonical text of the configuration
  std::string plan;        // LaunchPlan text
  std::string cubin;       // bytes; may be empty if ptx is not
  std::string ptx;         // may be empty
  int64_t registers = 0;   // per thread
  int64_t spillBytes = 0;  // per thread
  int64_t sharedBytes = 0; // static and dynamic, per CTA
  std::string compileLog;
  std::string nvrtcVersion; // "13.0"
  std::string note;         // fallbacks taken, in words; empty if none

  template <class F> static void fields(F &&f) {
    f("content_key", &KernelRecord::contentKey);
    KernelFamily::fields(f);
    f("kernel_arch", &KernelRecord::kernelArch);
    f("min_driver", &KernelRecord::minDriver);
    f("config", &KernelRecord::config);
    f("plan", &KernelRecord::plan);
    f("cubin", &KernelRecord::cubin);
    f("ptx", &KernelRecord::ptx);
    f("registers", &KernelRecord::registers);
    f("spill_bytes", &KernelRecord::spillBytes);
    f("shared_bytes", &KernelRecord::sharedBytes);
    f("compile_log", &KernelRecord::compileLog);
    f("nvrtc_version", &KernelRecord::nvrtcVersion);
    f("note", &KernelRecord::note);
  }
};

// A kernel that won (isTuned = 1) or stands in untuned (isTuned = 0) for one key.
struct Winner : WinnerKey {
  std::string contentKey;
  int64_t isTuned = 0;
  double medianUs = 0;       // 0 if not measured
  int64_t driverVersion = 0; // as cuDriverGetVersion counts; 0 if not measured
  int64_t createdUnix = 0;   // seconds; the store fills it when 0

  template <class F> static void fields(F &&f) {
    WinnerKey::fields(f);
    f("content_key", &Winner::contentKey);
    f("is_tuned", &Winner::isTuned);
    f("median_us", &Winner::medianUs);
    f("driver_version", &Winner::driverVersion);
    f("created_unix", &Winner::createdUnix);
  }
};

// What is known of a configuration after a trial.
struct TrialNumbers {
  double medianUs = 0;
  double minUs = 0;
  double maxError = 0; // of the correctness check; 0 if not checked
  std::string message; // why not measured; empty otherwise
  int64_t registers = 0;
  int64_t spillBytes = 0;
  double compileSeconds = 0;
  int64_t smClockMhz = 0; // when it was timed; 0 unknown
  double powerWatts = 0;  // of the whole card, likewise
};

// One attempt of a tuning session. A session is the digest of the WinnerKey part; within it a trial is
// named by the digest of its configuration.
struct Trial : WinnerKey, TrialNumbers {
  std::string configDigest;
  std::string config;
  // tuner::outcomeName: "measured", "compile_failed", "spilled", "wrong", "launch_failed", "timed_out", "stopped"; only
  // what is measured has a median.
  std::string outcome;
  int64_t driverVersion = 0;
  int64_t createdUnix = 0; // seconds; the store fills it when 0

  // Names the session this trial belongs to.
  static std::string sessionKey(const WinnerKey &key);

  template <class F> static void fields(F &&f) {
    WinnerKey::fields(f);
    f("config_digest", &Trial::configDigest);
    f("config", &Trial::config);
    f("outcome", &Trial::outcome);
    f("median_us", &Trial::medianUs);
    f("min_us", &Trial::minUs);
    f("max_error", &Trial::maxError);
    f("message", &Trial::message);
    f("registers", &Trial::registers);
    f("spill_bytes", &Trial::spillBytes);
    f("compile_seconds", &Trial::compileSeconds);
    f("driver_version", &Trial::driverVersion);
    f("created_unix", &Trial::createdUnix);
    f("sm_clock_mhz", &Trial::smClockMhz);
    f("power_watts", &Trial::powerWatts);
  }
};

// A GPU that the store has seen, with what else is known about it. 0 or empty where unknown.
struct DeviceRecord : DeviceIdentity {
  int64_t driverVersion = 0;
  int64_t l2Bytes = 0;
  int64_t createdUnix = 0; // seconds; the store fills it when 0

  template <class F> static void fields(F &&f) {
    DeviceIdentity::fields(f);
    f("driver_version", &DeviceRecord::driverVersion);
    f("l2_bytes", &DeviceRecord::l2Bytes);
    f("created_unix", &DeviceRecord::createdUnix);
  }
};

// Leads from a readable name to a pattern digest, for applications without a compiler.
struct NameRecord {
  std::string name;        // "sliding_window"
  std::string pattern;     // digest
  std::string parameters;  // names of the run-time sizes, in order of param<i>, separated by spaces
  int64_t createdUnix = 0; // seconds; the store fills it when 0

  template <class F> static void fields(F &&f) {
    f("name", &NameRecord::name);
    f("pattern", &NameRecord::pattern);
    f("parameters", &NameRecord::parameters);
    f("created_unix", &NameRecord::createdUnix);
  }
};

// True if code compiled for `kernelArch` runs on a GPU of architecture `deviceArch` ("sm_90"): sm_XY on
// the same major and at least the minor version, sm_XYa on exactly that one, sm_XYf within the major
// version, compute_XY on the same or any later one. False for names that are none of these.
bool kernelRunsOn(const std::string &kernelArch, const std::string &deviceArch);

// The architecture that the PTX beside a cubin was made for: "sm_90a" gives "compute_90a".
std::string virtualArch(const std::string &kernelArch);

// How a lookup matched, best first.
enum class MatchKind { exact, nearestBucket, sameArchitecture, untunedDefault, none };

// "exact", "nearest bucket", "same architecture", "untuned default", "none".
const char *matchKindName(MatchKind kind);

} // namespace heddle
