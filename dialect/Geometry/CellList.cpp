//===- CellList.cpp - where the vtable of rules lives ----------------------===//
#include "dialect/Geometry/CellList.h"

namespace heddle::attn {
ListRule::~ListRule() = default;
} // namespace heddle::attn
