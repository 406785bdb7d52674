// Owns what a file's scale of a whole tensor is to a call.
#pragma once

#include "compiler/Io/AttentionInputs.h"

namespace heddle {

// A scale of no dimensions becomes that of each head of its tensor. invalidArgument: another tensor of no dimensions, which would
// count as not given.
Status spreadScale(const KindRole &role, RoleTensors &tensors);

} // namespace heddle
