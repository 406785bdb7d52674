#include "compiler/Views/RingRates.h"

#include "compiler/Views/KeptPairs.h"

#include <cmath>

namespace heddle::views {

const LinkRecord *nearestLinks(const MeasuredRates &measured, const std::string &gpu, LinkSpan span, int64_t ranks) {
  const LinkRecord *best = nullptr;
  auto distance = [&](const LinkRecord &links) { return std::fabs(std::log(double(links.ranks) / double(ranks))); };
  for (const LinkRecord &links : measured.links) {
    const bool isOfSpan = span == LinkSpan::any || (span == LinkSpan::inHost) == (links.hosts == 1);
    if (isOfSpan && isOnGpu(links.deviceName, gpu) && (!best || distance(links) < distance(*best)))
      best = &links;
  }
  return best;
}

std::string wordsOf(const LinkRecord &links) {
  return std::to_string(links.ranks) + " x " + links.deviceName +
         (links.hosts > 1 ? " on " + std::to_string(links.hosts) + " hosts" : "") + ", NCCL " + links.nccl;
}

std::optional<TunedRate> kernelRate(const MeasuredRates &measured, const PatternFile &file, const RingRequest &request,
                                    const std::string &gpu) {
  const RingCall &call = request.call;
  if (dtypeBytes(call.dtype) != 2)
    return std::nullopt;
  const Result<KeptPairs> kept = keptPairsOf(file, request.sizes, {}, {0, {}});
  if (!kept || !kept->count)
    return std::nullopt;
  const double keys = static_cast<double>(*kept->count) / (double(call.heads) * double(request.sizes.seqlenQ));
  return tunedRate(measured.tuned,
                   {file, call.kind.isBackward(), call.headDim, call.valueDim, std::max(1.0, keys), gpu});
}

} // namespace heddle::views
