// Owns what the arguments of a pattern are in a call: what is given, else defaults, within the bounds that the pattern
// says.
#pragma once

#include "dialect/IR/Attn.h"
#include "runtime/Core/Status.h"

#include <optional>
#include <vector>

namespace heddle {

/// One word for each argument (RealWord.h), of tensors 0. `given` has a place for each. invalidArgument names a size
/// without a value, a value out of bounds.
Result<std::vector<int64_t>> bindWords(attn::PatternOp pattern, const std::vector<std::optional<int64_t>> &given);

} // namespace heddle
