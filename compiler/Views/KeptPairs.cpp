#include "compiler/Views/KeptPairs.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Views/KeptRows.h"
#include "dialect/IR/PatternOperands.h"
#include "runtime/Core/CountText.h"

#include <numeric>

namespace heddle::views {

using namespace heddle::attn;

/// The kept pairs of one batch element, each asked of the compiled predicate; heads that are alike once.
static KeptPairs enumeratePairs(KeptRows &rows, const std::vector<AlikeHeads> &groups, const ProblemSizes &sizes,
                                const PairEffort &effort) {
  std::vector<uint16_t> copies;
  WideInt total = 0;
  for (size_t group = 0; group < groups.size(); ++group)
    for (int64_t row = 0; row < sizes.seqlenQ; ++row) {
      if (effort.progress && row % 256 == 0)
        effort.progress((double(group) + double(row) / double(sizes.seqlenQ)) / double(groups.size()));
      rows.read(groups[group].first, row, copies);
      total += WideInt(std::accumulate(copies.begin(), copies.end(), int64_t(0))) * groups[group].heads;
    }
  return {total, "counted pair by pair, for batch element 0", rows.rowsRead()};
}

static bool hasLists(const PatternAnalysis &analysis) {
  for (const Variant &variant : analysis.variants)
    for (const PieceList &pieces : variant.branches)
      for (const Piece &piece : pieces)
        if (piece.list)
          return true;
  return false;
}

/// A tensor that a mask reads says something else of each batch element.
static bool isOfEachElement(const PatternFile &file) {
  attn::PatternOp pattern = file.pattern();
  return llvm::any_of(file.analysis().maskTensors,
                      [&](unsigned argument) { return attn::hasExtent(pattern, argument, attn::Extent::Batch); });
}

/// What may have to be tried, over so many heads that differ.
static WideInt pairsToTry(const PatternFile &file, const ProblemSizes &sizes, size_t heads) {
  const size_t branches = file.analysis().variants.front().branches.size();
  return WideInt(heads) * sizes.seqlenQ * sizes.seqlenK * WideInt(branches);
}

static std::string whyUncounted(const PatternFile &file, const ProblemSizes &sizes, WideInt pairs,
                                const PairEffort &effort, bool isCutShort) {
  const std::string why =
      isCutShort ? "its closed form takes more than " + grouped(sizes.mostEvaluations) + " evaluations"
      : hasLongLists(file.analysis(), sizes) ? "its lists have more than " + grouped(kMostListEntries) + " entries"
                                             : std::string("the pattern has a part without a closed form");
  return "unknown: " + why + ", and " + grouped(pairs) + " pairs are more than the " + grouped(effort.mostPairs) +
         " that are tried one by one";
}

static std::string closedFormNote(const PatternFile &file) {
  std::string note = hasLists(file.analysis()) ? "closed form, lists read entry by entry" : "closed form";
  if (attn::lacksTensors(file.analysis(), {}))
    note += isOfEachElement(file) ? " for what its tensors hold of batch element 0" : " for what its tensors hold";
  return note;
}

Result<KeptPairs> keptPairsOf(const PatternFile &file, const ProblemSizes &sizes, const Operands &operands,
                              const PairEffort &effort) {
  if (Status known = checkMaskTensors(file, sizes); !known.isOk())
    return KeptPairs{std::nullopt, "unknown: " + known.message()};
  bool isCutShort = false;
  if (std::optional<WideInt> count = countPairs(file.analysis(), sizes, &isCutShort))
    return KeptPairs{count, closedFormNote(file)};
  if (file.lowered() != file.canonical()) // as one union: branches without common pairs are made of more pieces
    if (std::optional<WideInt> count = countPairs(analyze(file.canonical()), sizes, &isCutShort))
      return KeptPairs{count, closedFormNote(file)};
  auto uncounted = [&](WideInt pairs) {
    return KeptPairs{std::nullopt, whyUncounted(file, sizes, pairs, effort, isCutShort)};
  };
  if (const WideInt pairs = pairsToTry(file, sizes, 1); pairs > effort.mostPairs)
    return uncounted(pairs);
  HEDDLE_ASSIGN(KeptRows rows, KeptRows::create(file, sizes, operands));
  const std::vector<AlikeHeads> groups = alikeHeads(sizes.heads, [&](int64_t head) { return rows.headValues(head); });
  if (const WideInt pairs = pairsToTry(file, sizes, groups.size()); pairs > effort.mostPairs)
    return uncounted(pairs);
  return enumeratePairs(rows, groups, sizes, effort);
}

} // namespace heddle::views
