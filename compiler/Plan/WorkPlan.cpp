//===- WorkPlan.cpp - combinations of a plan ------------------------------===//
#include "compiler/Plan/WorkPlan.h"

#include <set>

namespace heddle {

static std::string kernelText(const PlanPattern &pattern, PlanHeadDims dims, DType dtype) {
  std::string text = pattern.label;
  if (!pattern.pattern.empty())
    text += ":" + pattern.pattern;
  if (!pattern.name.empty())
    text += " as " + pattern.name;
  for (const std::string &size : pattern.sizes)
    text += " " + size;
  text += std::string(" ") + dtypeName(dtype) + " head_dim=" + std::to_string(dims.head);
  return dims.value == dims.head ? text : text + " value_dim=" + std::to_string(dims.value);
}

std::string PackItem::str() const { return kernelText(pattern, dims, dtype) + " " + arch; }

std::string TuneItem::str() const {
  std::string heads = std::to_string(problem.heads), rows = std::to_string(problem.seqlenQ);
  if (problem.kvHeads != problem.heads)
    heads += "[" + std::to_string(problem.kvHeads) + "]";
  if (problem.seqlenK != problem.seqlenQ)
    rows += "/" + std::to_string(problem.seqlenK);
  std::string text = kernelText(pattern, dims, dtype) + " " + std::to_string(problem.batch) + "x" + heads + "x" + rows;
  return gpu.empty() ? text : text + " on " + gpu;
}

namespace {

/// Adds what the list does not have yet.
template <class Item> class Distinct {
public:
  explicit Distinct(std::vector<Item> &items) : items(items) {}
  void add(Item item) {
    if (seen.insert(item.str()).second)
      items.push_back(std::move(item));
  }

private:
  std::vector<Item> &items;
  std::set<std::string> seen;
};

template <class Use> void forEachKernel(const WorkPlan &plan, Use use) {
  for (const PlanPattern &pattern : plan.patterns)
    for (const PlanHeadDims &dims : plan.headDimsOf(pattern))
      for (DType dtype : plan.dtypes)
        use(pattern, dims, dtype);
}

} // namespace

std::vector<PackItem> WorkPlan::packItems() const {
  std::vector<PackItem> items;
  Distinct<PackItem> distinct(items);
  forEachKernel(*this, [&](PlanPattern pattern, PlanHeadDims dims, DType dtype) {
    pattern.sizes.clear(); // one kernel serves them all
    for (const std::string &arch : archs)
      distinct.add({pattern, dims, dtype, arch});
  });
  return items;
}

std::vector<TuneItem> WorkPlan::tuneItems() const {
  const std::vector<std::string> anyGpu = {""};
  std::vector<TuneItem> items;
  Distinct<TuneItem> distinct(items);
  forEachKernel(*this, [&](const PlanPattern &pattern, PlanHeadDims dims, DType dtype) {
    for (const PlanProblem &problem : problemsOf(pattern))
      for (const std::string &gpu : gpus.empty() ? anyGpu : gpus)
        distinct.add({pattern, dims, dtype, problem, gpu});
  });
  return items;
}

} // namespace heddle
