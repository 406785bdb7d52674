// Owns the list of the functions that compute a call on the processors of this machine: `<kind>OnCpu` for each line of
// HEDDLE_KINDS. All compute in fp32.
#pragma once

#include "codegen/Cpu/CpuCall.h"

namespace heddle {

/// Thread safe. invalidArgument, before anything is written, if sizes do not fit together.
using CpuFunction = Status (*)(const CpuCall &call);

/// The call says what it adds to; the bits of all do not depend on the run.
CpuFunction cpuFunctionOf(KindBase kind);

} // namespace heddle
