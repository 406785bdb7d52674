#pragma once

#include "dialect/IR/Attn.h"

namespace heddle::attn {

/// Those of the whole pattern: all its masks that have documents agree where they begin. None: `whyNone` says why.
/// There is one at least, the first begins at row 0, the last ends with the rows, and all begin among them, whatever
/// the tensors hold.
std::optional<DocumentRows> documentRowsOf(PatternOp pattern, std::string &whyNone);

} // namespace heddle::attn
