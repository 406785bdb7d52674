// Owns the way from the arguments of the C interface to a checked call of the CPU target.
#pragma once

#include "compiler/Library/CompiledPattern.h"
#include "runtime/Core/CallShape.h"

namespace heddle {

/// invalidArgument or unsupported name the field; nothing was written. The kind outlives the call.
Status runOnHost(const KindText &kind, CompiledPattern &pattern, const heddle_attention_args &args, int32_t threads);
/// What runOnHost would refuse.
Status checkOnHost(const KindText &kind, CompiledPattern &pattern, const heddle_attention_args &args);

} // namespace heddle
