#pragma once

#include "compiler/Tools/Output.h"
#include "dialect/Geometry/Counts.h"

#include <limits>

namespace heddle::cli {

/// A count >= 0: a number, or beyond 64 bits a decimal string.
inline Json countJson(attn::WideInt value) {
  return value <= attn::WideInt(std::numeric_limits<uint64_t>::max()) ? Json(static_cast<uint64_t>(value))
                                                                      : Json(attn::toString(value));
}

/// null where there is none.
inline Json countJson(const std::optional<attn::WideInt> &value) { return value ? countJson(*value) : Json(); }

} // namespace heddle::cli
