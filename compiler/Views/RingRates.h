// Owns what a database knows of a call over ranks: how fast kernels are that were tuned for its pattern, and how fast links are
// that were measured.
#pragma once

#include "compiler/Views/CostRates.h"
#include "compiler/Views/RingPlan.h"
#include "runtime/Core/LinkRecord.h"

namespace heddle::views {

struct MeasuredRates {
  TunedWinners tuned;
  std::vector<LinkRecord> links; ///< of the same database
};

enum class LinkSpan { any, inHost, betweenHosts };

/// Of links between GPUs of this name (GpuModel::name) those of the number of ranks that is nearest; null: there are none.
const LinkRecord *nearestLinks(const MeasuredRates &measured, const std::string &gpu, LinkSpan span, int64_t ranks);

/// "2 x NVIDIA H200, NCCL 2.28.9".
std::string wordsOf(const LinkRecord &links);

/// Of kernels for the request on a GPU of this name, by the winner whose rows keep most nearly as many keys as the whole call's.
/// None: tunedRate() has none, elements are not of 16 bits, or pairs are not counted.
std::optional<TunedRate> kernelRate(const MeasuredRates &measured, const PatternFile &file, const RingRequest &request,
                                    const std::string &gpu);

} // namespace heddle::views
