// Owns the answer to whether a pattern means the same for every head, so that a part of the heads is a call of its own.
#pragma once

#include "dialect/Geometry/Variant.h"
#include "dialect/IR/Attn.h"

#include <string>

namespace heddle {

/// What differs from head to head in a call of these sizes, in words; empty: nothing does.
std::string whatDependsOnHeads(attn::PatternOp pattern, const attn::AnalysedCall &call);

} // namespace heddle
