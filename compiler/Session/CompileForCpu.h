//===- CompileForCpu.h - a pattern file for this machine --------*- C++ -*-===//
// Owns the way from a pattern file to machine code of this machine's processors, for callers that only pass it on.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_SESSION_COMPILEFORCPU_H
#define HEDDLE_COMPILER_SESSION_COMPILEFORCPU_H

#include "runtime/Core/Status.h"

#include <memory>

namespace heddle {

class JitPattern;
class PatternFile;

/// Never null. A pattern with functions that have no form on this machine is unsupported.
Result<std::shared_ptr<const JitPattern>> compileForCpu(const PatternFile &file);

} // namespace heddle

#endif
