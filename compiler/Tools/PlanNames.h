//===- PlanNames.h - what a plan names --------------------------*- C++ -*-===//
#ifndef HEDDLE_COMPILER_TOOLS_PLANNAMES_H
#define HEDDLE_COMPILER_TOOLS_PLANNAMES_H

#include "compiler/Plan/WorkPlan.h"

namespace heddle::cli {

/// Whether all that the plan names is there, also what the command at hand passes over: patterns, architectures,
/// run-time sizes. invalidArgument: it is not; the message names the place in the plan, and what was probably meant.
Status checkPlanNames(const WorkPlan &plan, const std::string &label);

} // namespace heddle::cli

#endif
