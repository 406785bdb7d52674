// Owns how a mask says that the query rows lie in documents, one behind the other: a hint for who lays rows into tiles.
// What a pattern keeps does not depend on it.
#pragma once

#include "dialect/Geometry/IntExpr.h"

namespace heddle::attn {

struct DocumentRows {
  IntExpr count; ///< of the documents, from lengths of tensors
  IntExpr begin; ///< the row at which document Symbol::Cell begins, 0 to `count`: there the one before ends
};

} // namespace heddle::attn
