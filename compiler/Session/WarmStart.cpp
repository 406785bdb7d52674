#include "compiler/Session/TunePrior.h"
#include "runtime/Core/FieldText.h"

#include <algorithm>

namespace heddle {
namespace {

struct Neighbour {
  const Store *store;
  Winner winner;
  int64_t distance;
};

bool isSameFunction(const KernelFamily &a, const KernelFamily &b) {
  return a.pattern == b.pattern && a.kind == b.kind && a.dtype == b.dtype && a.headDim == b.headDim &&
         a.valueDim == b.valueDim;
}

/// In doublings of the work and of the rows of a tile; another architecture is farther than any of them, another GPU of
/// the same one than a few.
int64_t distanceOf(const WinnerKey &a, const WinnerKey &b) {
  constexpr int64_t kOtherDevice = 4, kOtherArch = 100;
  return std::llabs(a.workPerSm - b.workPerSm) + std::llabs(a.tilesPerRow - b.tilesPerRow) +
         std::llabs(a.queryRows - b.queryRows) + (a.gqaRatio != b.gqaRatio) +
         (a.deviceName != b.deviceName ? kOtherDevice : 0) + (a.arch != b.arch ? kOtherArch : 0);
}

} // namespace

Result<std::vector<std::string>> warmStarts(const std::vector<const Store *> &stores, const WinnerKey &key,
                                            const TuneSpace &space) {
  std::vector<Neighbour> neighbours;
  for (const Store *store : stores) {
    HEDDLE_ASSIGN(std::vector<Winner> winners, store->winners());
    for (Winner &winner : winners)
      if (winner.isTuned && isSameFunction(winner, key))
        neighbours.push_back({store, winner, distanceOf(winner, key)});
  }
  auto isNearer = [](const Neighbour &a, const Neighbour &b) {
    return std::tie(a.distance, a.winner.deviceName, a.winner.contentKey) <
           std::tie(b.distance, b.winner.deviceName, b.winner.contentKey);
  };
  std::sort(neighbours.begin(), neighbours.end(), isNearer);
  std::vector<std::string> texts = {space.defaultPoint()};
  for (const Neighbour &neighbour : neighbours) {
    if (texts.size() > kMostWarmStarts)
      break;
    HEDDLE_ASSIGN(KernelRecord record, neighbour.store->kernel(neighbour.winner.contentKey));
    HEDDLE_ASSIGN(std::string text, space.pointOf(record.config));
    if (!text.empty() && std::find(texts.begin(), texts.end(), text) == texts.end())
      texts.push_back(std::move(text));
  }
  return texts;
}

Result<std::string> incumbentOf(const Store &store, const WinnerKey &key, const TuneSpace &space) {
  HEDDLE_ASSIGN(StoreLookup found, store.lookup(LookupQuery(key)));
  if (found.match != MatchKind::exact || !fieldsEqual(static_cast<const WinnerKey &>(found.winner), key))
    return std::string();
  return space.pointOf(found.record.config);
}

} // namespace heddle
