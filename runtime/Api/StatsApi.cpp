#include "runtime/Api/Handles.h"
#include "runtime/Core/CountersText.h"
#include "runtime/Core/DriftWatch.h"
#include "runtime/Device/DeviceState.h"
#include "runtime/Include/heddle_stats.h"

#include <cstddef>
#include <cstring>

using namespace heddle;

namespace {

heddle_kernel_stats statsOf(const KernelRow &row) {
  heddle_kernel_stats stats = {sizeof(stats),           0,
                               row.kernel.c_str(),      row.pattern.c_str(),
                               row.kind.c_str(),        row.device.c_str(),
                               row.bus.c_str(),         row.launches.get(),
                               row.pairs.get(),         {},
                               row.samples.times.get(), row.samples.seconds(),
                               row.drifts.get()};
  for (int match = 0; match < kMatchKinds; ++match)
    stats.found[match] = row.found[match].get();
  return stats;
}

heddle_stats statsOf(const Counters &counters) {
  heddle_stats stats = {};
  stats.struct_size = sizeof(stats);
  stats.kernels = counters.rowCount();
  for (int i = 0; i < stats.kernels; ++i) {
    const heddle_kernel_stats row = statsOf(counters.row(i));
    stats.launches += row.launches, stats.pairs += row.pairs, stats.samples += row.samples;
    stats.drifts += row.drifts;
    for (int match = 0; match < kMatchKinds; ++match)
      stats.found[match] += row.found[match];
  }
  stats.found[HEDDLE_MATCH_NONE] += counters.notFound.get();
  stats.compilations = counters.compilations.times.get();
  stats.compilation_seconds = counters.compilations.seconds();
  stats.searches = counters.searches.times.get();
  stats.search_seconds = counters.searches.seconds();
  stats.store_waits = counters.storeWaits.times.get();
  stats.store_wait_seconds = counters.storeWaits.seconds();
  stats.store_retries = counters.storeRetries.get();
  stats.workspace_bytes = counters.workspace.get();
  stats.workspace_peak_bytes = counters.workspace.highest();
  for (int code = 0; code < kStatusCodes; ++code)
    stats.refusals[code] = counters.refusals[code].get();
  stats.lost_samples = counters.lostSamples.get();
  stats.arena_bytes = counters.arenas.get();
  stats.arena_peak_bytes = counters.arenas.highest();
  return stats;
}

} // namespace

extern "C" {

heddle_status heddle_stats_get(heddle_stats *stats) {
  return guarded([&]() -> Status {
    if (!stats)
      return missing("stats", "stats");
    collectSamples();
    return writeVersioned("stats", statsOf(Counters::get()), offsetof(heddle_stats, launches), *stats);
  });
}

heddle_status heddle_stats_kernel(int32_t index, heddle_kernel_stats *stats) {
  return guarded([&]() -> Status {
    if (!stats)
      return missing("kernel stats", "stats");
    collectSamples();
    const int count = Counters::get().rowCount();
    if (index < 0 || index >= count)
      return Status::notFound("kernel stats: index: expected 0 to " + std::to_string(count - 1) + ", got " +
                              std::to_string(index));
    return writeVersioned("kernel stats", statsOf(Counters::get().row(index)), offsetof(heddle_kernel_stats, kernel),
                          *stats);
  });
}

heddle_status heddle_stats_text(char *text, uint64_t capacity, uint64_t *bytes) {
  return guarded([&]() -> Status {
    if (!bytes || (!text && capacity > 0))
      return missing("stats text", bytes ? "text" : "bytes");
    collectSamples();
    const std::string metrics = metricsText(Counters::get());
    *bytes = metrics.size() + 1;
    if (capacity >= *bytes)
      std::memcpy(text, metrics.c_str(), metrics.size() + 1);
    return {};
  });
}

heddle_status heddle_stats_sample(uint32_t every) {
  Counters::get().sampleEvery.store(every, std::memory_order_relaxed);
  return HEDDLE_OK;
}

heddle_status heddle_stats_on_drift(heddle_drift_found found, void *user) {
  return guarded([&]() -> Status {
    // Never freed: another thread may be calling it.
    Counters::get().listener.store(new DriftListener{found, user}, std::memory_order_release);
    return {};
  });
}

// Who lists them asks until there are no more: that is no refusal to be counted.
heddle_status heddle_stats_drift(int32_t index, heddle_drift *drift) {
  bool isBehindLast = false;
  const heddle_status status = guarded([&]() -> Status {
    if (!drift)
      return missing("drift", "drift");
    collectSamples();
    heddle_drift known;
    isBehindLast = index < 0 || !slowKernel(Counters::get(), index, known);
    if (!isBehindLast)
      return writeVersioned("drift", known, offsetof(heddle_drift, kernel), *drift);
    lastMessage() = "drift: index: there are not so many kernels that are slow, got " + std::to_string(index);
    return {};
  });
  return isBehindLast && status == HEDDLE_OK ? HEDDLE_NOT_FOUND : status;
}

heddle_status heddle_prepared_set_pairs(heddle_prepared *prepared, int64_t pairs) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("prepared pairs", "prepared", prepared));
    if (pairs < 0)
      return Status::invalidArgument("prepared pairs: pairs: expected 0 or more, got " + std::to_string(pairs));
    prepared->launch.setPairs(pairs);
    return {};
  });
}

} // extern "C"
