//===- Spellings.h - other texts of one set ------------------------------------===//
// Owns laws of sets and of sizes that rewrite a composition of masks into another text of the same set.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_SPELLINGS_H
#define HEDDLE_TESTS_UNIT_SUPPORT_SPELLINGS_H

#include "support/RandomPattern.h"

namespace heddle::test {

/// How many laws there are.
size_t spellingLaws();

/// The mask after `steps` laws that apply somewhere in it; `applied` counts how often each was.
MaskNode respelled(std::mt19937 &random, MaskNode mask, int steps, std::vector<int64_t> &applied);

} // namespace heddle::test

#endif
