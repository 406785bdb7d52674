// Owns the CPU target: the reference for people without a GPU. It walks the same generated ranges as
// a device skeleton and computes a blocked online softmax in fp32.
#pragma once

#include "codegen/Cpu/CpuCall.h"
#include "codegen/Cpu/TileItems.h"

namespace heddle {

struct JitContext;

// Writes every element of out, and of lse if given, exactly once: rows that keep no key get 0 and
// -inf (or the carry, if there is one). Elements of k and v that no visited tile holds are not read, and those of a key
// change only the rows that keep it, whatever they are. Values below 3.4e38 / (kept keys of a row) do not overflow.
// Thread safe; no state is kept between calls. Fails with invalidArgument, before anything is
// written, when the sizes do not fit together.
Result<CpuAttentionCounts> runAttention(const CpuCall &call);

/// What every call that walks a pattern must satisfy: sizes, parameters and tensors of the pattern.
Status checkSizesOf(const CpuCall &call);

/// The tiles of queries of a call.
TileItems queryTiles(const CpuCall &call);

/// The context of one head of a call.
JitContext contextOf(const CpuCall &call, int32_t batch, int32_t head);

} // namespace heddle
