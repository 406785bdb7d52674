//===- SequenceChecks.cpp - sequences of a call and their pages -------------===//
#include "runtime/Core/SequenceChecks.h"
#include "runtime/Core/Positions.h"

#include <algorithm>

namespace heddle {
namespace {

std::string num(int64_t value) { return std::to_string(value); }

bool hasPages(const std::vector<KindRole> &roles) {
  return std::any_of(roles.begin(), roles.end(), [](const KindRole &known) { return known.role == Role::pageTable; });
}

Status checkSequenceCount(const heddle_attention_args &args, LaunchSymbols &symbols) {
  const int64_t batch = symbols[LaunchSymbol::batch];
  if (!args.cu_seqlens_q) {
    if (args.sequences != 0 && args.sequences != batch)
      return badArguments("sequences: expected " + num(batch) + ", the batch of q, or 0, got " + num(args.sequences));
    return {};
  }
  if (batch != 1)
    return badArguments("q: size of batch: expected 1 beside cu_seqlens_q, got " + num(batch));
  if (args.sequences < 1)
    return badArguments("sequences: expected how many cu_seqlens_q has the offsets of, at least 1, got " +
                        num(args.sequences));
  symbols[LaunchSymbol::sequences] = args.sequences;
  return {};
}

Status checkPages(const heddle_attention_args &args, LaunchSymbols &symbols) {
  const int64_t size = symbols[LaunchSymbol::pageSize], most = kFarthestPosition / std::max<int64_t>(size, 1);
  if (size < 1 || size > kMostKeysOfPage)
    return badArguments("k: size of row: expected pages of 1 to " + num(kMostKeysOfPage) + " keys, got " + num(size));
  if (args.page_size != 0 && args.page_size != size)
    return badArguments("page_size: expected " + num(size) + ", the rows of k, or 0, got " + num(args.page_size));
  if (args.max_pages < 0 || args.max_pages > most)
    return badArguments("max_pages: expected 0 to " + num(most) + " pages of " + num(size) +
                        " keys, as positions lie below 2^30, got " + num(args.max_pages));
  symbols[LaunchSymbol::maxPages] = args.max_pages;
  symbols[LaunchSymbol::seqlenK] = args.max_pages * size;
  return {};
}

} // namespace

Status checkSequences(const std::vector<KindRole> &roles, const heddle_attention_args &args, LaunchSymbols &symbols) {
  symbols[LaunchSymbol::sequences] = symbols[LaunchSymbol::batch];
  if (!hasPages(roles))
    return {};
  HEDDLE_TRY(checkSequenceCount(args, symbols));
  for (const auto &[name, origin] : {std::pair("q_origin", args.q_origin), {"k_origin", args.k_origin}})
    if (origin != 0)
      return badArguments(std::string(name) + ": expected 0, got " + num(origin) +
                          "; the queries of a sequence in pages are its last positions");
  return checkPages(args, symbols);
}

namespace {

Status checkLengths(const int32_t *lengths, const LaunchSymbols &symbols) {
  for (int64_t sequence = 0; sequence < symbols[LaunchSymbol::sequences]; ++sequence)
    if (lengths[sequence] < 0 || lengths[sequence] > symbols[LaunchSymbol::seqlenK])
      return badLength(sequence, lengths[sequence], symbols[LaunchSymbol::maxPages], symbols[LaunchSymbol::pageSize]);
  return {};
}

Status checkOffsets(const int32_t *offsets, const LaunchSymbols &symbols) {
  const int64_t sequences = symbols[LaunchSymbol::sequences], rows = symbols[LaunchSymbol::seqlenQ];
  for (int64_t i = 0; i <= sequences; ++i) {
    const int64_t least = i == 0 ? 0 : i == sequences ? rows : offsets[i - 1], most = i == 0 ? 0 : rows;
    if (offsets[i] < least || offsets[i] > most)
      return badArguments("cu_seqlens_q: offset " + num(i) + ": expected " + num(least) +
                          (least == most ? "" : " to " + num(most)) + ", got " + num(offsets[i]));
  }
  return {};
}

} // namespace

Status checkSequenceValues(const std::vector<KindRole> &roles, const heddle_attention_args &args,
                           const LaunchSymbols &symbols) {
  if (!hasPages(roles))
    return {};
  HEDDLE_TRY(checkLengths(args.seqused_k, symbols));
  return args.cu_seqlens_q ? checkOffsets(args.cu_seqlens_q, symbols) : Status();
}

Status badLength(int64_t sequence, int64_t length, int64_t maxPages, int64_t pageSize) {
  return badArguments("seqused_k: sequence " + num(sequence) + ": expected 0 to " + num(maxPages * pageSize) +
                      " keys, " + num(maxPages) + " pages of " + num(pageSize) + ", got " + num(length));
}

Status badPage(int64_t sequence, int64_t number, int64_t page, int64_t pages) {
  return badArguments("page_table: sequence " + num(sequence) + ", page " + num(number) + ": expected 0 to " +
                      num(pages - 1) + ", got " + num(page));
}

} // namespace heddle
