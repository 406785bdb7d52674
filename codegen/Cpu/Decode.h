//===- Decode.h - one sequence of a call in pages ---------------*- C++ -*-===//
// Owns what a sequence of a call of kind decode is by itself.
//===----------------------------------------------------------------------===//
#pragma once

#include "codegen/Cpu/CpuCall.h"

namespace heddle {

/// A forward call on one sequence: its lengths, positions and tensors. The call's lengths, offsets and table are checked,
/// and outlive it.
CpuCall sequenceOf(const CpuCall &call, int32_t sequence);

} // namespace heddle
