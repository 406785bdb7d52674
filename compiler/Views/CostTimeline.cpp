// Every stage has an order of its own, and starts what is next in it as soon as what that needs is there.
#include "compiler/Views/CostTimeline.h"

#include <algorithm>
#include <optional>

namespace heddle::views {
namespace {

class Pipeline {
public:
  explicit Pipeline(const PipelineWork &work)
      : work(work), ends(size_t(2 * work.stages * work.parts * work.microBatches), -1) {}

  std::vector<PipelineSlot> slots() {
    for (int64_t stage = 0; stage < work.stages; ++stage)
      orders.push_back(orderOf(stage));
    std::vector<size_t> next(orders.size(), 0);
    std::vector<double> free(orders.size(), 0);
    for (bool isMoving = true; isMoving;) {
      isMoving = false;
      for (size_t stage = 0; stage < orders.size(); ++stage)
        for (; next[stage] < orders[stage].size(); ++next[stage]) {
          PipelineSlot &slot = orders[stage][next[stage]];
          const std::optional<double> ready = readyAt(slot);
          if (!ready)
            break;
          slot.begin = std::max(*ready, free[stage]);
          slot.end = free[stage] = slot.begin + (slot.isBackward ? work.backward : work.forward) / double(work.parts);
          endOf(slot) = slot.end;
          isMoving = true;
        }
    }
    std::vector<PipelineSlot> all;
    for (const std::vector<PipelineSlot> &order : orders)
      all.insert(all.end(), order.begin(), order.end());
    return all;
  }

private:
  /// Number `index` of the forward passes of a stage: groups of micro-batches go through one part after the other.
  PipelineSlot passOf(int64_t stage, int64_t index, bool isBackward) const {
    const int64_t group = work.parts > 1 ? work.stages : work.microBatches, inTurn = group * work.parts;
    const int64_t part = index % inTurn / group;
    return {stage, isBackward ? work.parts - 1 - part : part, index / inTurn * group + index % group, isBackward, 0, 0};
  }

  std::vector<PipelineSlot> orderOf(int64_t stage) const {
    const int64_t passes = work.microBatches * work.parts, behind = work.stages - 1 - stage;
    const int64_t ahead = work.isForwardFirst ? passes
                          : work.parts > 1    ? std::min(passes, 2 * behind + (work.parts - 1) * work.stages)
                                              : std::min(passes, behind);
    std::vector<PipelineSlot> order;
    for (int64_t index = 0; index < ahead; ++index)
      order.push_back(passOf(stage, index, false));
    for (int64_t index = 0; index < passes; ++index) {
      if (index + ahead < passes)
        order.push_back(passOf(stage, index + ahead, false));
      order.push_back(passOf(stage, index, true));
    }
    return order;
  }

  double &endOf(const PipelineSlot &slot) {
    return ends[size_t(((slot.isBackward * work.stages + slot.stage) * work.parts + slot.part) * work.microBatches +
                       slot.microBatch)];
  }

  /// None: what it needs is not computed yet.
  std::optional<double> readyAt(const PipelineSlot &slot) {
    PipelineSlot before = slot;
    const int64_t step = slot.isBackward ? 1 : -1, edge = slot.isBackward ? work.stages - 1 : 0,
                  lastPart = slot.isBackward ? work.parts - 1 : 0;
    if (slot.stage != edge) {
      before.stage += step;
    } else if (slot.part != lastPart) {
      before.stage = work.stages - 1 - edge;
      before.part += step;
    } else if (slot.isBackward) {
      before.isBackward = false; // its own forward pass
    } else {
      return 0;
    }
    const double end = endOf(before);
    return end < 0 ? std::nullopt : std::optional(end);
  }

  const PipelineWork &work;
  std::vector<std::vector<PipelineSlot>> orders; ///< of each stage
  std::vector<double> ends;
};

} // namespace

std::vector<PipelineSlot> pipelineSlots(const PipelineWork &work) {
  if (work.parts > 1 && work.microBatches % work.stages != 0)
    return {};
  return Pipeline(work).slots();
}

} // namespace heddle::views
