// Owns what the operations of `heddle sweep` share. sweep.cpp has those that read and merge; SweepRun.cpp tunes.
#pragma once

#include "compiler/Plan/WorkPlan.h"
#include "compiler/Tools/Verb.h"

#include <string>

namespace heddle::cli {

Action addSweepRun(CLI::App &command);
Action addSweepStatus(CLI::App &command);
Action addSweepMerge(CLI::App &command);

/// PLAN, and --dir=FOLDER for what a sweep writes.
struct SweepPlanOptions {
  std::string plan, folder;
  bool json = false;
  void add(CLI::App &command);
  void addFolder(CLI::App &command);
  /// invalidArgument if the plan has no problems to tune.
  Result<WorkPlan> load() const;
};

/// Whether all that the plan names is there, also what the command at hand passes over: patterns, architectures,
/// run-time sizes. invalidArgument: it is not; the message names the place in the plan, and what was probably meant.
Status checkPlanNames(const WorkPlan &plan, const std::string &label);

} // namespace heddle::cli
