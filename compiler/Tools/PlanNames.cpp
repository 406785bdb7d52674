//===- PlanNames.cpp - what a plan names ----------------------------------===//
#include "compiler/Tools/PlanNames.h"
#include "compiler/Session/KernelShape.h"
#include "compiler/Pattern/Suggest.h"
#include "compiler/Tools/Options.h"

namespace heddle::cli {

static Status checkArch(const std::string &name) {
  const Status known = archNamed(name).status();
  if (known.isOk() || name == "all")
    return {};
  const std::string meant = didYouMean(name, archNames());
  return Status::invalidArgument(known.message() + meant);
}

static Status checkPattern(const PlanPattern &pattern) {
  HEDDLE_ASSIGN(const auto file, (PatternOptions{pattern.file, pattern.pattern}.load()));
  return file->checkSizeNames(pattern.sizes);
}

Status checkPlanNames(const WorkPlan &plan, const std::string &label) {
  for (const std::string &arch : plan.archs)
    if (const Status known = checkArch(arch); !known.isOk())
      return Status::invalidArgument(label + ": archs: " + known.message());
  for (size_t i = 0; i < plan.patterns.size(); ++i)
    if (const Status found = checkPattern(plan.patterns[i]); !found.isOk())
      return Status::invalidArgument(label + ": patterns[" + std::to_string(i) + "]: " + found.message());
  return {};
}

} // namespace heddle::cli
