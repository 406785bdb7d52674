// Who computes what when in a pipeline: every pass once, none before what it needs, and a step as long as the planner says.
#include "compiler/Views/CostTimeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <tuple>

using namespace heddle::views;

namespace {

double lengthOf(const std::vector<PipelineSlot> &slots) {
  double end = 0;
  for (const PipelineSlot &slot : slots)
    end = std::max(end, slot.end);
  return end;
}

} // namespace

TEST_CASE("a step takes its micro-batches and the bubble of the planner") {
  for (const bool isForwardFirst : {false, true})
    for (const int64_t stages : {1, 2, 4, 7})
      for (const int64_t parts : {1, 2, 3}) {
        if (parts > 1 && (isForwardFirst || stages == 1))
          continue;
        CAPTURE(isForwardFirst);
        CAPTURE(stages);
        CAPTURE(parts);
        const PipelineWork work = {stages, parts, 3 * stages, 1, 2, isForwardFirst};
        const auto slots = pipelineSlots(work);
        REQUIRE(slots.size() == size_t(2 * stages * parts * 3 * stages));
        CHECK(lengthOf(slots) == doctest::Approx(3.0 * (3.0 * stages) + 3.0 * double(stages - 1) / double(parts)));
      }
}

TEST_CASE("every pass is there once, behind what it needs and what its stage does before") {
  const PipelineWork work = {4, 2, 8, 1, 2, false};
  std::map<std::tuple<bool, int64_t, int64_t, int64_t>, PipelineSlot> passes;
  const auto slots = pipelineSlots(work);
  for (size_t i = 0; i < slots.size(); ++i) {
    const PipelineSlot &slot = slots[i];
    CHECK(passes.emplace(std::tuple(slot.isBackward, slot.stage, slot.part, slot.microBatch), slot).second);
    if (i > 0 && slots[i - 1].stage == slot.stage)
      CHECK(slots[i - 1].end <= slot.begin);
  }
  REQUIRE(passes.size() == 2 * 4 * 2 * 8);
  for (int64_t batch = 0; batch < 8; ++batch)
    for (int64_t place = 1; place < 8; ++place) { // in the order of layers
      const auto at = [&](bool isBackward, int64_t of) { return passes.at({isBackward, of % 4, of / 4, batch}); };
      CHECK(at(false, place - 1).end <= at(false, place).begin);
      CHECK(at(true, place).end <= at(true, place - 1).begin);
      CHECK(at(false, 7).end <= at(true, 7).begin);
    }
}

TEST_CASE("parts in turn want groups of micro-batches") { CHECK(pipelineSlots({4, 2, 6, 1, 2, false}).empty()); }
