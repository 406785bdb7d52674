//===- SequenceTensors.h - tables of pages and lengths --------------------------===//
// Owns the integers of calls on keys in pages, as files have them: random ones, and the check that they name keys that
// there are.
#pragma once

#include "compiler/Io/HostTensor.h"
#include "runtime/Core/Status.h"

namespace heddle {

// How the keys of sequences lie in memory.
struct PageSizes {
  int64_t sequences = 0, pages = 0, pageSize = 0, maxPages = 0;
};

// i32 [sequences, max_pages]: each page once, in random order, as long as there are enough of them.
HostTensor randomPageTable(const PageSizes &sizes, uint64_t seed);
// i32 [sequences], from 0 to what the table has room for; the first one is as long as that.
HostTensor randomLengths(const PageSizes &sizes, uint64_t seed);
// i32 [sequences], each as likely as any other from `least` to `most`.
HostTensor randomLengthsBetween(int64_t sequences, int64_t least, int64_t most, uint64_t seed);
// i32 [sequences, max_pages] for these lengths: entries of keys name each page once before one twice, in random order; the
// others name page 0.
HostTensor pageTableOf(const PageSizes &sizes, const HostTensor &lengths, uint64_t seed);

// Lengths are within the table, and entries of pages that have keys name pages that there are.
Status checkSequenceTensors(const PageSizes &sizes, const HostTensor &table, const HostTensor &lengths);

} // namespace heddle
