// Owns the part of CallChecks.h that is of calls whose keys lie in pages, or in ragged rows: how many sequences there are, how long they may
// be, and, where the memory can be read, what their lengths, offsets and tables hold.
#pragma once

#include "runtime/Core/CallArguments.h"
#include "runtime/Core/LaunchExpr.h"

namespace heddle {

constexpr int64_t kMostKeysOfPage = 256;

// `roles`: of the kind. With pages: how many sequences, tables and pages there are, beside what tensors say, which is
// known; seqlen_k is the most keys that a sequence may have. Without: as many sequences as the batch has elements.
Status checkSequences(const std::vector<KindRole> &roles, const heddle_attention_args &args, LaunchSymbols &symbols);
// The integers of a checked call in host memory: lengths, offsets and what sequences share. Entries of tables are looked at
// where they are read.
Status checkSequenceValues(const std::vector<KindRole> &roles, const heddle_attention_args &args,
                           const LaunchSymbols &symbols);
// Of a call that has the role (Presence::part), of a pattern of that name whose calls are no parts of a whole.
Status badPart(Role role, const std::string &pattern);
// Whose table it is.
struct TablePlace {
  int64_t sequence;
  int64_t kvHead = -1; // of tables for each kv head
};
// Of a sequence whose keys do not fit into so many pages, or that has a negative length.
Status badLength(const TablePlace &place, int64_t length, int64_t maxPages, int64_t pageSize);
// Of entry `number` of a table, which names page `page` of so many.
Status badPage(const TablePlace &place, int64_t number, int64_t page, int64_t pages, const char *table = "page_table");

} // namespace heddle
