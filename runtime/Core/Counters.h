// Owns the numbers that a running process says of itself: of the process, and a row for each kernel and GPU. Adding is a
// relaxed atomic on memory that is never freed, so launches need no lock and rows outlive their kernels, as counters
// never go down. Rows are made under a lock; kernels beyond the last one share it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace heddle {

// Of many threads. What it says is never more than what was added before.
class Count {
public:
  void add(int64_t number = 1) { value.fetch_add(number, std::memory_order_relaxed); }
  // What it was before.
  int64_t next() { return value.fetch_add(1, std::memory_order_relaxed); }
  int64_t get() const { return value.load(std::memory_order_relaxed); }

private:
  std::atomic<int64_t> value{0};
};

// Bytes in use, and the most that there were.
class Level {
public:
  void add(int64_t bytes) { reach(now.fetch_add(bytes, std::memory_order_relaxed) + bytes); }
  void take(int64_t bytes) { now.fetch_sub(bytes, std::memory_order_relaxed); }
  // For a moment, beside what is in use.
  void touch(int64_t bytes) { reach(get() + bytes); }
  int64_t get() const { return now.load(std::memory_order_relaxed); }
  int64_t highest() const { return most.load(std::memory_order_relaxed); }

private:
  void reach(int64_t bytes);
  std::atomic<int64_t> now{0}, most{0};
};

// What something takes lately: each time counts for a quarter, and those before it for the rest.
class RecentTime {
public:
  void add(double seconds) {
    const double before = get();
    recent.store(before == 0 ? seconds : before + (seconds - before) / 4, std::memory_order_relaxed);
  }
  double get() const { return recent.load(std::memory_order_relaxed); }

private:
  std::atomic<double> recent{0};
};

// What there is of something that takes time.
struct TimedCount {
  Count times, nanoseconds;
  void add(double seconds) { times.add(), nanoseconds.add(int64_t(seconds * 1e9)); }
  double seconds() const { return double(nanoseconds.get()) * 1e-9; }
};

constexpr int kMatchKinds = 5; // of MatchKind
constexpr int kStatusCodes = 10;
constexpr int kMostRows = 1024;

// Of a row; the first and the last one tell rows apart.
struct KernelNames {
  std::string kernel, pattern, kind; // its content key, the pattern's digest
  std::string device, bus;           // "NVIDIA H100 80GB HBM3", "00000000:1b:00.0"
};

class DriftWatch; // DriftWatch.h
struct DriftListener;

// A kernel on a GPU.
struct KernelRow : KernelNames {
  explicit KernelRow(KernelNames names) : KernelNames(std::move(names)) {}
  Count launches, pairs;
  Count found[kMatchKinds];
  Count turns;                                // launches while samples are taken
  TimedCount samples;                         // launches whose time is known
  RecentTime recentSample;                    // 0 before the first
  Count drifts;                               // times that it became slow
  std::atomic<DriftWatch *> watches{nullptr}; // of the problems whose time is stored
};

struct Counters {
  TimedCount compilations, searches, storeWaits;
  Count storeRetries;
  Count notFound;                       // questions that no kernel answered
  Count refusals[kStatusCodes];         // failing calls of the C interface, by code
  Count lostSamples;                    // no place was free
  Level workspace;                      // of calls that are prepared; launches touch it
  Level arenas;                         // bytes that arenas have given
  std::atomic<uint32_t> sampleEvery{0}; // launches of a kernel; 0: none

  std::atomic<const DriftListener *> listener{nullptr};

  // Of the library that asks; lives until the process ends.
  static Counters &get() { return all; }
  // The row of a kernel, made if there is none.
  KernelRow &row(const KernelNames &names);
  int rowCount() const { return made.load(std::memory_order_acquire); }
  // Below rowCount().
  const KernelRow &row(int index) const { return *rows[index]; }

private:
  static Counters all;
  std::atomic<int> made{0};
  KernelRow *rows[kMostRows] = {};
};

} // namespace heddle
