#include "codegen/Cpu/CpuKinds.h"

namespace heddle {

#define HEDDLE_CPU_KIND(identifier, ...) Status identifier##OnCpu(const CpuCall &call);
HEDDLE_KINDS(HEDDLE_CPU_KIND)
#undef HEDDLE_CPU_KIND

CpuFunction cpuFunctionOf(KindBase kind) {
  static constexpr CpuFunction functions[] = {
#define HEDDLE_CPU_KIND(identifier, ...) identifier##OnCpu,
      HEDDLE_KINDS(HEDDLE_CPU_KIND)
#undef HEDDLE_CPU_KIND
  };
  return functions[int(kind)];
}

} // namespace heddle
