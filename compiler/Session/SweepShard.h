// Owns the order of a sweep on one machine: each GPU takes the next item of the shard that nobody finished, in a
// process of its own, and its end is written down before the next one begins.
#pragma once

#include "compiler/Plan/SweepJournal.h"
#include "compiler/Plan/WorkPlan.h"
#include "compiler/Session/TuneHere.h"

#include <atomic>
#include <functional>

namespace heddle {

struct SweepProgress {
  size_t ended = 0, failed = 0, total = 0; ///< of the items that this run has
  std::string last;                        ///< item that ended last
};

struct SweepOptions {
  std::string folder; ///< must exist
  Shard shard;
  std::vector<SweepGpu> gpus; ///< at least one
  /// Tunes one item on a GPU, into the database of the shard. Called from one thread for each GPU. item, device, host
  /// and time are filled in by the caller.
  std::function<SweepEntry(const TuneItem &item, const SweepGpu &gpu)> tune;
  std::function<void(const SweepProgress &progress)> progress = {}; ///< one call at a time; may be empty
  const std::atomic<bool> *cancel = nullptr;                        ///< no further item begins once it is true
};

struct SweepResult {
  size_t items = 0;                ///< of the shard
  size_t known = 0;                ///< finished by earlier runs
  size_t elsewhere = 0;            ///< for GPUs that are not here
  std::vector<SweepEntry> entries; ///< of this run, in the order of their ends
};

/// Runs what is left of the shard. Failures of items are entries; a Status says that the folder cannot be read or
/// written, or that another process runs the shard.
Result<SweepResult> runShard(const WorkPlan &plan, const SweepOptions &options);

// Owns how an item of a sweep is tuned without putting the sweep at risk: `heddle tune` as a child that sees one GPU.
// What hangs is killed, what crashes is started again, for its trials are recorded and it goes on behind them.

struct TuneCommand {
  std::string program;              ///< heddle
  std::string database;             ///< of the shard
  std::string folder;               ///< for what the child says; the file of a failed item stays there
  std::vector<std::string> options; ///< as `heddle tune` takes them: --budget, --strategy, --workers
  double limitSeconds = 600;        ///< after which the child hangs and is killed, with its process that measures
  int attempts = 3;                 ///< of a child that crashes, hangs or gives its GPU up
};

/// Tunes the item. Thread safe for different GPUs.
SweepEntry tuneElsewhere(const TuneCommand &command, const TuneItem &item, const SweepGpu &gpu);

} // namespace heddle
