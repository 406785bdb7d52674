#include "compiler/Plan/WorkPlan.h"
#include "runtime/Core/Kinds.h"

#include <algorithm>
#include <set>

namespace heddle {

template <class Item> static std::string kernelText(const Item &item) {
  const PlanPattern &pattern = item.pattern;
  const PlanHeadDims &dims = item.dims;
  std::string text = pattern.label;
  if (!pattern.pattern.empty())
    text += ":" + pattern.pattern;
  if (!pattern.name.empty())
    text += " as " + pattern.name;
  for (const std::string &size : pattern.sizes)
    text += " " + size;
  if (item.kind != Kind())
    text += " " + item.kind.name();
  for (size_t i = 0; i < pattern.gradientsOf.size(); ++i)
    text += (i ? ", " : " of ") + pattern.gradientsOf[i];
  text += std::string(" ") + dtypeName(item.dtype);
  if (item.precision != Precision::exact)
    text += std::string(" ") + precisionName(item.precision);
  text += " head_dim=" + std::to_string(dims.head);
  return dims.value == dims.head ? text : text + " value_dim=" + std::to_string(dims.value);
}

std::string PackItem::str() const { return kernelText(*this) + " " + arch; }

std::string TuneItem::str() const {
  std::string heads = std::to_string(problem.heads), rows = std::to_string(problem.seqlenQ);
  if (problem.kvHeads != problem.heads)
    heads += "[" + std::to_string(problem.kvHeads) + "]";
  if (problem.served.isGiven())
    rows += " over " + problem.served.text();
  else if (problem.seqlenK != problem.seqlenQ)
    rows += "/" + std::to_string(problem.seqlenK);
  std::string text = kernelText(*this) + " " + std::to_string(problem.batch) + "x" + heads + "x" + rows;
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

/// Items that are complete but for what they are made for.
template <class Item, class Use> void forEachKernel(const WorkPlan &plan, Use use) {
  for (const PlanPattern &pattern : plan.patterns)
    for (const PlanHeadDims &dims : plan.headDimsOf(pattern))
      for (DType dtype : plan.dtypes)
        for (const Kind &kind : plan.kinds)
          for (Precision precision : plan.precisionsOf(kind, dtype)) {
            Item item;
            item.pattern = pattern, item.dims = dims, item.dtype = dtype, item.kind = kind, item.precision = precision;
            if (!kind.isBackward())
              item.pattern.gradientsOf.clear();
            use(std::move(item));
          }
}

bool hasPrecision(const Kind &kind, DType dtype, Precision precision) {
  if (precision == Precision::exact)
    return true;
  const bool isForward = kind.base == KindBase::forward;
  return elementOf(precision) == dtype && (isForward || (kind.isBackward() && precision == Precision::tf32));
}

} // namespace

std::vector<Precision> WorkPlan::precisionsOf(const Kind &kind, DType dtype) const {
  std::vector<Precision> found;
  for (Precision each : kPrecisions) {
    const bool isMeant = precisions.empty() ? each == Precision::exact || isUsualWithoutLse(each)
                                            : std::find(precisions.begin(), precisions.end(), each) != precisions.end();
    if (isMeant && hasPrecision(kind, dtype, each))
      found.push_back(each);
  }
  return found;
}

std::vector<PackItem> WorkPlan::packItems() const {
  std::vector<PackItem> items;
  Distinct<PackItem> distinct(items);
  forEachKernel<PackItem>(*this, [&](PackItem item) {
    item.pattern.sizes.clear(); // one kernel serves them all
    for (const std::string &arch : archs) {
      item.arch = arch;
      distinct.add(item);
    }
  });
  return items;
}

std::vector<TuneItem> WorkPlan::tuneItems() const {
  const std::vector<std::string> anyGpu = {""};
  std::vector<TuneItem> items;
  Distinct<TuneItem> distinct(items);
  forEachKernel<TuneItem>(*this, [&](TuneItem item) {
    for (const PlanProblem &problem : problemsOf(item.pattern)) {
      if (problem.served.isGiven() != item.kind.hasPages())
        continue;
      for (const std::string &gpu : gpus.empty() ? anyGpu : gpus) {
        item.problem = problem, item.gpu = gpu;
        distinct.add(item);
      }
    }
  });
  return items;
}

} // namespace heddle
