#include "compiler/Session/CompileForCpu.h"
#include "codegen/Cpu/JitPattern.h"
#include "compiler/Pattern/PatternFunctions.h"
#include "compiler/Pattern/PatternFile.h"

namespace heddle {

Result<std::shared_ptr<const JitPattern>> compileForCpu(const PatternFile &file, Walk walk) {
  HEDDLE_ASSIGN(PatternFunctions functions, functionsOf(file, walk));
  llvm::FailureOr<JitPattern> pattern = JitPattern::create(*functions.module, *functions.info);
  if (failed(pattern))
    return Status::unsupported("the functions of '" + functions.info->name +
                               "' cannot be compiled for this machine: " + file.takeDiagnostics());
  return std::make_shared<const JitPattern>(std::move(*pattern));
}

void setSizes(const AttentionSizes &sizes, CpuCall &call) {
  call.setSizes([&](RoleExtent extent) { return sizes.of(extent); });
}

} // namespace heddle
