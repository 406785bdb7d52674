// Owns what a sequence of a call of kind decode is by itself.
#pragma once

#include "codegen/Cpu/CpuCall.h"

namespace heddle {

/// Calls `visit` with a forward call for each sequence that has queries, or, where each kv head has a table, for each
/// sequence and kv head, until one fails. The call's lengths and offsets are checked.
Status forEachSequence(const CpuCall &call, const std::function<Status(const CpuCall &)> &visit);

} // namespace heddle
