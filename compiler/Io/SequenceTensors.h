// Owns the integers of calls on keys in pages or in ragged rows, as files have them: random ones, and the check that they
// name pages that there are.
#pragma once

#include "compiler/Io/HostTensor.h"
#include "runtime/Core/Status.h"

namespace heddle {

// How the keys of sequences lie in memory; where there are several tables, tensors below have that dimension first.
struct PageSizes {
  int64_t sequences = 0, pages = 0, pageSize = 0, maxPages = 0, tables = 1;
};

// i32 [sequences, max_pages]: each page once, in random order, as long as there are enough of them.
HostTensor randomPageTable(const PageSizes &sizes, uint64_t seed);
// i32 [sequences], from 0 to what the table has room for, or, without tables, to an even share of the rows; the first one is
// as long as that.
HostTensor randomLengths(const PageSizes &sizes, uint64_t seed);
// i32 [sequences], each as likely as any other from `least` to `most`.
HostTensor randomLengthsBetween(const PageSizes &sizes, int64_t least, int64_t most, uint64_t seed);
// i32 [sequences + 1]: where rows of these lengths begin that lie behind each other.
HostTensor offsetsOf(const HostTensor &lengths);
// Even shares of `rows`.
HostTensor evenOffsets(int64_t sequences, int64_t rows);
// i32 [sequences, max_pages] for these lengths: entries of keys name each page once before one twice, in random order; the
// others name page 0.
HostTensor pageTableOf(const PageSizes &sizes, const HostTensor &lengths, uint64_t seed);

// i32 [sequences]: how many of its first keys each sequence has in the same pages as the one before it, all whole pages that
// both have; the entries of `table` are made the same. Every third sequence shares nothing, and begins anew.
HostTensor shareFirstPages(const PageSizes &sizes, HostTensor &table, const HostTensor &lengths);

// Tables behind each other: offsets, entries, and keys of last pages (heddle.h, kv_indptr).
struct ChainedTables {
  HostTensor offsets, entries, lastLengths;
};
ChainedTables chained(const PageSizes &sizes, const HostTensor &table, const HostTensor &lengths);

// Entries of pages that have keys name pages that there are. Lengths are within the table.
Status checkPageTable(const PageSizes &sizes, const HostTensor &table, const HostTensor &lengths);
// The same of tables behind each other, whose offsets are right.
Status checkChainedTables(const PageSizes &sizes, const HostTensor &offsets, const HostTensor &entries);

} // namespace heddle
