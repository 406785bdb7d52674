// Owns which tensors of a pattern ranks have rows of (RowTensor), for whoever plans calls over them.
#pragma once

#include "dialect/IR/Attn.h"
#include "runtime/Core/GroupPlan.h"

namespace heddle {

/// Of a pattern of whole calls, with so many keys.
std::vector<RowTensor> rowTensorsOf(attn::PatternOp pattern, int64_t keys);

} // namespace heddle
