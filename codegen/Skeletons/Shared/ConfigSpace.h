// Owns the judgement of every combination of knob values. Constraints read the knobs of one group only (Knob::group),
// so each group is judged by itself, the others at their defaults: thousands of evaluations instead of millions.
#pragma once

#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/Skeleton.h"

#include <functional>

namespace heddle {

/// Immutable after construction, for any number of threads. Points are given by the index of each knob's value.
class ConfigSpace {
public:
  using Point = std::vector<uint32_t>;

  /// The request must be one to which the skeleton applies.
  ConfigSpace(const Skeleton &skeleton, const KernelRequest &request);

  const std::vector<Knob> &knobs() const { return knobList; }
  /// Null: the point is feasible. Else the first constraint that refuses it, with the numbers of some configuration
  /// that has the point's values in the group that matters.
  const Rejection *refusal(const Point &point) const;
  /// The point's configuration with the fields that follow, feasible or not.
  KernelConfig configAt(const Point &point) const;
  /// Knobs whose value is not that of the skeleton's default.
  size_t changesFromDefault(const Point &point) const;
  int64_t valueAt(const Point &point, size_t knob) const { return knobList[knob].values[point[knob]]; }
  int64_t defaultOf(size_t knob) const { return defaults[knob]; }
  /// Every point, the last knob varying fastest, with its refusal.
  void forEach(const std::function<void(const Point &, const Rejection *)> &visit) const;
  /// The point that forEach visits after `number` others.
  Point pointAt(uint64_t number) const;

private:
  struct Verdict {
    size_t constraint; // its place in the skeleton's list
    Rejection rejection;
  };
  struct Group {
    std::vector<size_t> knobs;
    std::vector<std::optional<Verdict>> verdicts; // the last knob varying fastest
  };

  void judge(Group &group) const;
  size_t placeIn(const Group &group, const Point &point) const;
  void set(KernelConfig &config, size_t knob, uint32_t index) const;

  const Skeleton &skeleton;
  KernelRequest request;
  KernelConfig base;
  std::vector<Knob> knobList;
  std::vector<int64_t> defaults; // of the knobs
  std::vector<size_t> places;    // likewise, in the list of fields
  std::vector<Group> groups;
};

} // namespace heddle
