#include "dialect/Geometry/CellList.h"

namespace heddle::attn {
ListRule::~ListRule() = default;
} // namespace heddle::attn
