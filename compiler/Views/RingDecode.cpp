#include "compiler/Views/RingDecode.h"
#include "compiler/Views/ExplanationPrint.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Views/Picture.h"
#include "compiler/Views/RingWords.h"
#include "codegen/Skeletons/Decode/cluster_layout.cuh"
#include "dialect/Geometry/Counts.h"
#include "dialect/Geometry/Shard.h"

#include <algorithm>

namespace heddle::views {
namespace {

using attn::ColumnCounts;
using attn::IndexRange;

constexpr double kShareOfMemory = 0.93; ///< of the data sheet
constexpr double kShareByClusters =
    0.85; ///< where clusters share the heads of one sequence, which reach fewer processors
constexpr double kShareOfProducts = 0.35; ///< of the rate of forward kernels
constexpr double kDecodeLaunchMs = 8e-3;
constexpr double kMergeMs = 40e-3; ///< of the kernels that agree and merge, two H200, in a CUDA graph
constexpr int64_t kResultBytes = 4;

/// Keys that some query keeps, of heads of k and v that keep the same.
struct KeptKeys {
  int64_t kvHeads;
  ColumnCounts keys;
};

class DecodeClock {
public:
  DecodeClock(const PatternFile &file, const RingRequest &request)
      : call(request.call), queries(request.sizes.seqlenQ) {
    const attn::ShardVisitor visitor(file.analysis(), attn::Direction::Forward, request.sizes);
    const bool areAlike = attn::headGroups(file.analysis(), request.sizes).size() == 1;
    const int64_t group = call.heads / call.kvHeads;
    for (int64_t kvHead = 0; kvHead < (areAlike ? 1 : call.kvHeads); ++kvHead) {
      attn::RunsByClass classes;
      for (int64_t head = kvHead * group; head < (areAlike ? 1 : (kvHead + 1) * group); ++head) {
        const attn::ShardVisit visit = visitor.visit(head, {0, queries}, {0, request.sizes.seqlenK});
        isExact &= visit.isExact;
        attn::addColumns(classes, visit.columns);
      }
      kept.push_back({areAlike ? call.kvHeads : 1, ColumnCounts(attn::latticeColumns(std::move(classes)))});
      isExact &= !kept.back().keys.isBound();
    }
  }

  bool areExact() const { return isExact; }

  double bytes(IndexRange keys) const { return headKeys(keys) * double(call.bytesOfKey()); }

  /// Of a part of the heads.
  double ms(IndexRange keys, double shareOfHeads = 1) const {
    const double flops = headKeys(keys) * double(call.heads / call.kvHeads * call.batch * queries) *
                         double(call.kind.flopsOfPair(call.headDim, call.valueDim));
    return kDecodeLaunchMs + shareOfHeads * std::max(bytes(keys) / (gbps(keys) * 1e6),
                                                     flops / (kShareOfProducts * call.rates.tflops * 1e9));
  }

  /// Which kernel serves a call codegen/Skeletons/Decode/FewUnits.cpp decides.
  double gbps(IndexRange keys) const {
    const int64_t rows = queries * (call.heads / call.kvHeads), all = (keys.end - keys.begin) * call.kvHeads;
    const bool isByClusters = call.batch == 1 && rows <= decode::kClusterRows && all <= decode::kMostClusterKeys;
    return (isByClusters ? kShareByClusters : kShareOfMemory) * call.rates.memoryGBps;
  }

private:
  /// Each counts once for each head of k and v.
  double headKeys(IndexRange keys) const {
    double sum = 0;
    for (const KeptKeys &each : kept)
      sum += double(each.kvHeads) * double(each.keys.in(keys));
    return sum;
  }

  const RingCall &call;
  int64_t queries;
  std::vector<KeptKeys> kept;
  bool isExact = true;
};

/// Results of all queries, from every rank to all others in one message.
LinkLoad messageOf(const RingRequest &request, double bytesOfRank) {
  LinkLoad load;
  for (int64_t peer = 1; peer < request.ranks; ++peer) {
    load.receive(request.call.rates.areOfHost(0, peer), bytesOfRank);
    load.send(request.call.rates.areOfHost(0, peer), bytesOfRank);
  }
  return load;
}

DecodeScheme headScheme(const RingRequest &request, const DecodeClock &clock, double resultBytes) {
  const RingCall &call = request.call;
  if (call.kvHeads % request.ranks)
    return {"heads", std::nullopt,
            grouped(request.ranks) + " ranks do not divide " + counted(call.kvHeads, "head") + " of k and v"};
  const double share = 1 / double(request.ranks);
  const double outBytes = resultBytes * share * double(dtypeBytes(call.dtype)) / kResultBytes;
  return {"heads", clock.ms({0, request.sizes.seqlenK}, share) + messageOf(request, outBytes).ms(call.rates)};
}

} // namespace

Result<DecodeTimes> decodeTimes(const PatternFile &file, const RingRequest &request) {
  const RingCall &call = request.call;
  const int64_t keys = request.sizes.seqlenK;
  if (keys < request.ranks)
    return Status::invalidArgument("--seqlen: expected at least a key for each of " + grouped(request.ranks) +
                                   " ranks, got " + grouped(keys));
  if (Status tensors = checkMaskTensors(file, request.sizes); !tensors.isOk())
    return tensors;
  const DecodeClock clock(file, request);
  DecodeTimes times;
  times.isExact = clock.areExact();
  double slowest = 0;
  for (int64_t rank = 0; rank < request.ranks; ++rank) {
    const IndexRange own{keys * rank / request.ranks, keys * (rank + 1) / request.ranks};
    times.shares.push_back({own, clock.bytes(own), clock.ms(own)});
    slowest = std::max(slowest, times.shares.back().ms);
  }
  times.gbps = clock.gbps(times.shares.front().keys);
  const double resultBytes =
      double(kResultBytes * (call.valueDim + 1) * call.heads * call.batch * request.sizes.seqlenQ);
  const LinkLoad message = messageOf(request, resultBytes);
  times.receivedBytes = message.received();
  if (request.ranks > 1) {
    times.messageMs = message.ms(call.rates);
    times.mergeMs = kMergeMs + resultBytes * double(request.ranks) / (call.rates.memoryGBps * 1e6);
  }
  times.schemes = {{"keys", slowest + times.messageMs + times.mergeMs},
                   headScheme(request, clock, resultBytes),
                   {"one", clock.ms({0, keys})}};
  for (size_t scheme = 1; scheme < times.schemes.size(); ++scheme)
    if (times.schemes[scheme].ms && *times.schemes[scheme].ms < *times.schemes[times.best].ms)
      times.best = scheme;
  return times;
}

std::string decodeText(const PatternFile &file, const RingRequest &request, const DecodeTimes &times) {
  const RingCall &call = request.call;
  std::string text = "ring decode of " + titleOf(file, request.sizes) + " (" + file.path() + ")\n";
  text +=
      labelled("problem", (call.batch > 1 ? counted(call.batch, "sequence") + " of " : "") +
                              counted(request.sizes.seqlenK, "key") + ", " + grouped(request.sizes.seqlenQ) +
                              (request.sizes.seqlenQ == 1 ? " query, on " : " queries, on ") +
                              counted(request.ranks, "rank") + ", " + counted(call.heads, "head") + " (" +
                              grouped(call.kvHeads) + " for k and v), head_dim " + std::to_string(call.headDim) +
                              (call.valueDim == call.headDim ? "" : ", value_dim " + std::to_string(call.valueDim)) +
                              ", " + dtypeName(call.dtype));
  text += labelled("rates", "memory " + real("%.4g", times.gbps) + " GB/s, links " + linkWords(request));
  text += labelled("message", bytesText(times.receivedBytes) + " to each rank, " + milliseconds(times.messageMs) +
                                  "; merged in " + milliseconds(times.mergeMs));
  for (const DecodeScheme &scheme : times.schemes)
    text += labelled("predicted", scheme.name + std::string(8 - scheme.name.size(), ' ') +
                                      (scheme.ms ? milliseconds(*scheme.ms) : "- (" + scheme.whyNot + ")"));
  text += labelled("best", times.schemes[times.best].name);
  text +=
      std::string("\n  rank              keys         reads") + (times.isExact ? "" : " at most") + "    computes\n";
  for (size_t rank = 0; rank < times.shares.size(); ++rank) {
    const DecodeShare &share = times.shares[rank];
    text += cell(std::to_string(rank), 6) + cell(grouped(share.keys.end - share.keys.begin), 18) +
            cell(bytesText(share.keptBytes), 14) + cell(milliseconds(share.ms), times.isExact ? 12 : 20) + "\n";
  }
  return text;
}

} // namespace heddle::views
