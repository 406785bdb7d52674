#include "runtime/Core/SequenceChecks.h"
#include "runtime/Core/Positions.h"

#include <algorithm>

namespace heddle {
namespace {

std::string num(int64_t value) { return std::to_string(value); }

bool hasPages(const std::vector<KindRole> &roles) {
  return std::any_of(roles.begin(), roles.end(), [](const KindRole &known) { return known.role == Role::pageTable; });
}

Status badSize(const char *name, const std::string &expected, int64_t got) {
  return badArguments(std::string(name) + ": expected " + expected + ", got " + num(got));
}

Status checkSequenceCount(const heddle_attention_args &args, LaunchSymbols &symbols) {
  const int64_t batch = symbols[LaunchSymbol::batch];
  if (!args.cu_seqlens_q) {
    if (args.sequences != 0 && args.sequences != batch)
      return badSize("sequences", num(batch) + ", the batch of q, or 0", args.sequences);
    return {};
  }
  if (batch != 1)
    return badSize("q: size of batch", "1 beside cu_seqlens_q", batch);
  if (args.sequences < 1)
    return badSize("sequences", "how many cu_seqlens_q has the offsets of, at least 1", args.sequences);
  symbols[LaunchSymbol::sequences] = args.sequences;
  return {};
}

Status checkOneTable(const heddle_attention_args &args, const char *beside) {
  if (args.tables != 0 && args.tables != 1)
    return badSize("tables", std::string("0 beside ") + beside, args.tables);
  return {};
}

Status checkTables(const heddle_attention_args &args, LaunchSymbols &symbols) {
  const int64_t heads = symbols[LaunchSymbol::kvHeads];
  if (args.tables != 0 && args.tables != 1 && args.tables != heads)
    return badSize("tables", "0, 1 or " + num(heads) + ", the heads of k", args.tables);
  symbols[LaunchSymbol::tables] = std::max(args.tables, 1);
  if (!args.seqused_k && symbols[LaunchSymbol::sequences] != 0)
    return badArguments("seqused_k: expected the lengths of sequences beside page_table, got null");
  for (const auto &[name, beside] :
       {std::pair("shared_k", args.shared_k), {"k_origins", args.k_origins}, {"whole_k", args.whole_k}})
    if (beside)
      HEDDLE_TRY(checkOneTable(args, name));
  return {};
}

Status checkPages(const heddle_attention_args &args, LaunchSymbols &symbols) {
  const int64_t size = symbols[LaunchSymbol::pageSize], most = kFarthestPosition / std::max<int64_t>(size, 1);
  if (size < 1 || size > kMostKeysOfPage)
    return badSize("k: size of row", "pages of 1 to " + num(kMostKeysOfPage) + " keys", size);
  if (args.max_pages < 0 || (args.max_pages > most && !args.kv_indptr))
    return badSize("max_pages", "0 to " + num(most) + " pages of " + num(size) + " keys, as positions lie below 2^30",
                   args.max_pages);
  symbols[LaunchSymbol::maxPages] = args.max_pages;
  if (args.kv_indptr)
    return checkOneTable(args, "kv_indptr");
  const bool hasEntries = symbols[LaunchSymbol::sequences] * args.max_pages != 0;
  if (!args.page_table && (hasEntries || !args.seqused_k))
    return badArguments("page_table: expected a table of pages, or cu_seqlens_k of keys in rows, got null");
  return checkTables(args, symbols);
}

// Ragged rows are one page, of which each sequence has a part.
Status checkRows(const heddle_attention_args &args, LaunchSymbols &symbols) {
  const int64_t pages = symbols[LaunchSymbol::pages], rows = symbols[LaunchSymbol::pageSize];
  if (pages != 1)
    return badSize("k: size of page", "1 beside cu_seqlens_k", pages);
  if (rows > kFarthestPosition)
    return badSize("k: size of row", "at most 2^30 rows beside cu_seqlens_k, as positions lie below that", rows);
  if (args.max_pages != 0)
    return badSize("max_pages", "0 beside cu_seqlens_k", args.max_pages);
  symbols[LaunchSymbol::maxPages] = 1;
  return checkOneTable(args, "cu_seqlens_k");
}

} // namespace

Status checkSequences(const std::vector<KindRole> &roles, const heddle_attention_args &args, LaunchSymbols &symbols) {
  symbols[LaunchSymbol::sequences] = symbols[LaunchSymbol::batch];
  symbols[LaunchSymbol::tables] = 1;
  if (!hasPages(roles))
    return {};
  HEDDLE_TRY(checkSequenceCount(args, symbols));
  for (const auto &[name, origin] : {std::pair("q_origin", args.q_origin), {"k_origin", args.k_origin}})
    if (origin != 0)
      return badArguments(std::string(name) + ": expected 0, got " + num(origin) +
                          "; the queries of a sequence in pages are its last positions");
  const int64_t size = symbols[LaunchSymbol::pageSize];
  if (args.page_size != 0 && args.page_size != size)
    return badSize("page_size", num(size) + ", the rows of k, or 0", args.page_size);
  HEDDLE_TRY(args.cu_seqlens_k ? checkRows(args, symbols) : checkPages(args, symbols));
  symbols[LaunchSymbol::seqlenK] = std::min(symbols[LaunchSymbol::maxPages] * size, kFarthestPosition);
  return {};
}

namespace {

Status checkLengths(const int32_t *lengths, const LaunchSymbols &symbols) {
  const int64_t sequences = symbols[LaunchSymbol::sequences], tables = symbols[LaunchSymbol::tables];
  for (int64_t i = 0; i < tables * sequences; ++i)
    if (lengths[i] < 0 || lengths[i] > symbols[LaunchSymbol::seqlenK])
      return badLength({i % sequences, tables > 1 ? i / sequences : -1}, lengths[i], symbols[LaunchSymbol::maxPages],
                       symbols[LaunchSymbol::pageSize]);
  return {};
}

// Keys of a sequence whose offsets say how many there are.
int64_t keysOfOffsets(const heddle_attention_args &args, const LaunchSymbols &symbols, int64_t i) {
  if (args.cu_seqlens_k)
    return int64_t(args.cu_seqlens_k[i + 1]) - args.cu_seqlens_k[i];
  const int64_t pages = int64_t(args.kv_indptr[i + 1]) - args.kv_indptr[i];
  return pages ? (pages - 1) * symbols[LaunchSymbol::pageSize] + args.kv_last_page_len[i] : 0;
}

int64_t keysOf(const heddle_attention_args &args, const LaunchSymbols &symbols, int64_t i) {
  return args.seqused_k ? args.seqused_k[i] : keysOfOffsets(args, symbols, i);
}

Status checkUsed(const heddle_attention_args &args, const LaunchSymbols &symbols) {
  const int32_t *lengths = args.seqused_k;
  const char *offsets = args.cu_seqlens_k ? "cu_seqlens_k" : "kv_indptr";
  for (int64_t i = 0; lengths && i < symbols[LaunchSymbol::sequences]; ++i)
    if (const int64_t keys = keysOfOffsets(args, symbols, i); lengths[i] < 0 || lengths[i] > keys)
      return badSize(("seqused_k: sequence " + num(i)).c_str(), "0 to " + num(keys) + " keys, as " + offsets + " says",
                     lengths[i]);
  return {};
}

Status checkLastPages(const heddle_attention_args &args, const LaunchSymbols &symbols) {
  const int64_t size = symbols[LaunchSymbol::pageSize];
  for (int64_t i = 0; i < symbols[LaunchSymbol::sequences]; ++i) {
    const int64_t least = args.kv_indptr[i + 1] > args.kv_indptr[i], length = args.kv_last_page_len[i];
    if (length < least || length > size)
      return badSize(("kv_last_page_len: sequence " + num(i)).c_str(),
                     num(least) + " to " + num(size) + " keys of a page", length);
    if (const int64_t keys = keysOfOffsets(args, symbols, i); keys > kFarthestPosition)
      return badSize(("kv_indptr: sequence " + num(i)).c_str(), "at most 2^30 keys, as positions lie below that", keys);
  }
  return {};
}

// `isAll`: they end where the rows do.
Status checkOffsets(const char *name, const int32_t *offsets, int64_t sequences, int64_t rows, bool isAll = true) {
  for (int64_t i = 0; i <= sequences; ++i) {
    const int64_t least = i == 0 ? 0 : i == sequences && isAll ? rows : offsets[i - 1], most = i == 0 ? 0 : rows;
    if (offsets[i] < least || offsets[i] > most)
      return badSize((name + (": offset " + num(i))).c_str(), num(least) + (least == most ? "" : " to " + num(most)),
                     offsets[i]);
  }
  return {};
}

Status checkKeys(const heddle_attention_args &args, const LaunchSymbols &symbols) {
  const int64_t sequences = symbols[LaunchSymbol::sequences];
  if (!args.cu_seqlens_k && !args.kv_indptr)
    return checkLengths(args.seqused_k, symbols);
  if (args.kv_indptr) {
    HEDDLE_TRY(checkOffsets("kv_indptr", args.kv_indptr, sequences, symbols[LaunchSymbol::maxPages], false));
    HEDDLE_TRY(checkLastPages(args, symbols));
  } else {
    HEDDLE_TRY(checkOffsets("cu_seqlens_k", args.cu_seqlens_k, sequences, symbols[LaunchSymbol::pageSize]));
  }
  return checkUsed(args, symbols);
}

// Of sequences that follow each other: keys that both have lie in the same pages.
Status checkSamePages(const heddle_attention_args &args, const LaunchSymbols &symbols, int64_t i) {
  const int64_t maxPages = symbols[LaunchSymbol::maxPages], size = symbols[LaunchSymbol::pageSize];
  const int32_t *table = args.kv_indptr ? args.kv_indices : args.page_table;
  const int64_t own = args.kv_indptr ? args.kv_indptr[i] : i * maxPages;
  const int64_t before = args.kv_indptr ? args.kv_indptr[i - 1] : own - maxPages;
  for (int64_t n = 0; n * size < args.shared_k[i]; ++n)
    if (table[own + n] != table[before + n])
      return badSize(("shared_k: sequence " + num(i) + ", page " + num(n)).c_str(),
                     num(table[before + n]) + ", that of the sequence before it", table[own + n]);
  return {};
}

Status checkShared(const heddle_attention_args &args, const LaunchSymbols &symbols) {
  int64_t before = 0;
  for (int64_t i = 0; i < symbols[LaunchSymbol::sequences]; ++i) {
    const int64_t keys = keysOf(args, symbols, i);
    const int64_t most = std::min(before, keys), shared = args.shared_k[i];
    if (shared < 0 || shared > most)
      return badSize(("shared_k: sequence " + num(i)).c_str(),
                     i ? "0 to " + num(most) + " keys, which it and the one before it have" : "0, as none is before it",
                     shared);
    if (i)
      HEDDLE_TRY(checkSamePages(args, symbols, i));
    before = keys;
  }
  return {};
}

// Where parts of sequences stand; the lengths are right.
Status checkParts(const heddle_attention_args &args, const LaunchSymbols &symbols) {
  for (int64_t i = 0; (args.k_origins || args.whole_k) && i < symbols[LaunchSymbol::sequences]; ++i) {
    const int64_t keys = keysOf(args, symbols, i), origin = args.k_origins ? args.k_origins[i] : 0;
    const std::string sequence = ": sequence " + num(i);
    if (origin < 0 || origin > kFarthestPosition - keys)
      return badSize(("k_origins" + sequence).c_str(),
                     "0 to " + num(kFarthestPosition - keys) + " before " + num(keys) +
                         " keys, as positions lie below 2^30",
                     origin);
    if (args.whole_k && (args.whole_k[i] < origin + keys || args.whole_k[i] > kFarthestPosition))
      return badSize(("whole_k" + sequence).c_str(), num(origin + keys) + ", where its part ends, to 2^30",
                     args.whole_k[i]);
  }
  return {};
}

} // namespace

Status checkSequenceValues(const std::vector<KindRole> &roles, const heddle_attention_args &args,
                           const LaunchSymbols &symbols) {
  if (!hasPages(roles))
    return {};
  const int64_t sequences = symbols[LaunchSymbol::sequences];
  if (args.cu_seqlens_q)
    HEDDLE_TRY(checkOffsets("cu_seqlens_q", args.cu_seqlens_q, sequences, symbols[LaunchSymbol::seqlenQ]));
  HEDDLE_TRY(checkKeys(args, symbols));
  HEDDLE_TRY(checkParts(args, symbols));
  return args.shared_k && sequences ? checkShared(args, symbols) : Status();
}

Status badPart(Role role, const std::string &pattern) {
  return badArguments(std::string(specOf(role).name) + ": expected null, as calls of pattern '" + pattern +
                      "' are no parts; heddle_pattern_part makes the one whose calls are");
}

static std::string nameOf(const TablePlace &place) {
  return (place.kvHead < 0 ? "" : "kv head " + num(place.kvHead) + ", ") + ("sequence " + num(place.sequence));
}

Status badLength(const TablePlace &place, int64_t length, int64_t maxPages, int64_t pageSize) {
  return badSize(("seqused_k: " + nameOf(place)).c_str(),
                 "0 to " + num(maxPages * pageSize) + " keys, " + num(maxPages) + " pages of " + num(pageSize), length);
}

Status badPage(const TablePlace &place, int64_t number, int64_t page, int64_t pages, const char *table) {
  return badSize((table + (": " + nameOf(place)) + ", page " + num(number)).c_str(), "0 to " + num(pages - 1), page);
}

} // namespace heddle
