//===- TuneProcess.h - a tune in a process of its own -----------*- C++ -*-===//
// Owns how an item of a sweep is tuned without putting the sweep at risk: `heddle tune` as a child that sees one GPU.
// What hangs is killed, what crashes is started again, for its trials are recorded and it goes on behind them.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Session/SweepShard.h"

namespace heddle {

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
