//===- PreparedPatterns.h - shipped patterns, ready for kernels ---------------===//
// Apart from its users, so that tests of what knows no MLIR include none.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_PREPAREDPATTERNS_H
#define HEDDLE_TESTS_UNIT_SUPPORT_PREPAREDPATTERNS_H

#include "compiler/Session/PreparedPattern.h"

namespace heddle::test {

/// Of the pattern in <folder>/<name>.mlir; fails the test case if there is none.
PreparedPattern preparedFrom(const std::string &folder, const std::string &name);

} // namespace heddle::test

#endif
