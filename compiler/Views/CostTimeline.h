// Owns the order of a pipeline's work: which micro-batch every stage computes at which time of a step.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::views {

struct PipelineWork {
  int64_t stages = 1, parts = 1; ///< of each stage, that are passed in turn
  int64_t microBatches = 1;
  double forward = 0, backward = 0; ///< of a micro-batch through all parts of a stage
  bool isForwardFirst = false;      ///< all of it (gpipe), not one forward and one backward in turn
};

struct PipelineSlot {
  int64_t stage, part, microBatch;
  bool isBackward;
  double begin, end;
};

/// In the order of each stage, stage by stage; empty: several parts take turns in groups of as many micro-batches as there are
/// stages, and these are no multiple.
std::vector<PipelineSlot> pipelineSlots(const PipelineWork &work);

} // namespace heddle::views
