#include "dialect/Geometry/NamedLayout.h"
#include "dialect/Geometry/PairCounter.h"
#include "runtime/Core/ParseCount.h"

#include <algorithm>

namespace heddle::attn {
namespace {

/// The first row from `begin` on, a multiple of `step` before the last one, whose rows before it keep at least `wanted` pairs.
Result<int64_t> cutAt(PairCounter &counter, const ProblemSizes &sizes, int64_t begin, int64_t end, int64_t step,
                      WideInt wanted) {
  const int64_t rest = sizes.seqlenQ % step;
  int64_t first = (begin - rest + step - 1) / step, last = (end - rest) / step;
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    const std::optional<WideInt> pairs = counter.count({0, rest + middle * step}, {0, sizes.seqlenK});
    if (!pairs)
      return Status::unsupported("balanced layout: pairs that rows of this pattern keep are not counted in time; "
                                 "contiguous, zigzag and striped need no count");
    if (*pairs >= wanted)
      last = middle;
    else
      first = middle + 1;
  }
  return rest + first * step;
}

/// Every rank keeps room for a step of rows. All but the first have whole tiles, of which half a one takes as long.
Result<ShardLayout> balancedLayout(const LayoutRequest &request) {
  const int64_t rows = request.sizes.seqlenQ, ranks = request.ranks;
  HEDDLE_TRY(contiguousLayout(rows, ranks).status());
  constexpr int64_t kRowsOfTiles = 192, kStepsOfRank = 42;
  const int64_t step = std::clamp<int64_t>(rows / ranks / kStepsOfRank, 1, kRowsOfTiles);
  PairCounter counter(request.analysis, request.sizes);
  const std::optional<WideInt> all = counter.count({0, rows}, {0, request.sizes.seqlenK});
  ShardLayout layout;
  int64_t begin = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t after = ranks - 1 - rank;
    int64_t end = rows;
    if (after > 0) {
      HEDDLE_ASSIGN(end, cutAt(counter, request.sizes, begin + step, rows - after * step, step,
                               all ? *all * WideInt(rank + 1) / WideInt(ranks) : WideInt(0)));
    }
    layout.ranks.push_back({{begin, end}});
    begin = end;
  }
  return layout;
}

} // namespace

const std::vector<std::string> &layoutNames() {
  static const std::vector<std::string> names = {"contiguous", "zigzag", "striped", "balanced"};
  return names;
}

Result<ShardLayout> namedLayout(const std::string &name, const LayoutRequest &request) {
  const int64_t rows = request.sizes.seqlenQ, ranks = request.ranks;
  if (name == "contiguous")
    return contiguousLayout(rows, ranks);
  if (name == "zigzag")
    return zigzagLayout(rows, ranks);
  if (name == "striped")
    return stripedLayout(rows, ranks, request.stripe.value_or(defaultStripe(rows, ranks)));
  if (name == "balanced")
    return balancedLayout(request);
  const std::string striped = "striped:";
  if (name.rfind(striped, 0) == 0)
    if (const std::optional<int64_t> stripe = parseCount(name.substr(striped.size())); stripe && *stripe > 0)
      return stripedLayout(rows, ranks, *stripe);
  std::string known;
  for (const std::string &each : layoutNames())
    known += each + ", ";
  return Status::invalidArgument("layout: expected " + known + "striped:ROWS or ranges as in \"0:64;64:128\", got \"" +
                                 name + "\"");
}

} // namespace heddle::attn
