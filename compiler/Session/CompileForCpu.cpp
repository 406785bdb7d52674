//===- CompileForCpu.cpp - a pattern file for this machine ----------------===//
#include "compiler/Session/CompileForCpu.h"
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Emit/PatternInfo.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Pattern/PatternFunctions.h"

namespace heddle {

Result<std::shared_ptr<const JitPattern>> compileForCpu(const PatternFile &file) {
  HEDDLE_ASSIGN(PatternFunctions functions, functionsOf(file));
  llvm::FailureOr<JitPattern> pattern = JitPattern::create(*functions.module, *functions.info);
  if (failed(pattern))
    return Status::unsupported("the functions of '" + functions.info->name +
                               "' cannot be compiled for this machine: " + file.takeDiagnostics());
  return std::make_shared<const JitPattern>(std::move(*pattern));
}

} // namespace heddle
