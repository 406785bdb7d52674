//===- DocumentRows.h - where the documents of rows begin -------*- C++ -*-===//
// Owns how a mask says that the query rows lie in documents, one behind the other: a hint for who lays rows into tiles. What a
// pattern keeps does not depend on it.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_ANALYSIS_DOCUMENTROWS_H
#define HEDDLE_DIALECT_ANALYSIS_DOCUMENTROWS_H

#include "dialect/Analysis/IntExpr.h"

#include <optional>
#include <string>

namespace heddle::attn {

class PatternOp;

struct DocumentRows {
  IntExpr count; ///< of the documents, from lengths of tensors
  IntExpr begin; ///< the row at which document Symbol::Cell begins, 0 to `count`: there the one before ends
};

/// Those of the whole pattern: all its masks that have documents agree where they begin. None: `whyNone` says why. There is one
/// at least, the first begins at row 0, the last ends with the rows, and all begin among them, whatever the tensors hold.
std::optional<DocumentRows> documentRowsOf(PatternOp pattern, std::string &whyNone);

} // namespace heddle::attn

#endif
