// Owns the way from a pattern file to machine code of this machine's processors, for callers that only pass it on, and
// from the sizes of a call to what that is asked.
#pragma once

#include "codegen/Cpu/CpuCall.h"
#include "codegen/Emit/PatternInfo.h"
#include "compiler/Io/AttentionInputs.h"

#include <memory>

namespace heddle {

class PatternFile;

/// Walk::both serves calls backward too. Never null. A pattern with functions that have no form on this machine is unsupported.
Result<std::shared_ptr<const JitPattern>> compileForCpu(const PatternFile &file, Walk walk = Walk::queries);

void setSizes(const AttentionSizes &sizes, CpuCall &call);

} // namespace heddle
