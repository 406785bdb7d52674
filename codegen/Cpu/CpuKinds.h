//===- CpuKinds.h - calls of every kind on the CPU --------------*- C++ -*-===//
// Owns what a call is for the processors of this machine, by roles, and the list of the functions that compute one:
// `<kind>OnCpu` for each line of HEDDLE_KINDS. All compute in fp32.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_CODEGEN_CPU_CPUKINDS_H
#define HEDDLE_CODEGEN_CPU_CPUKINDS_H

#include "codegen/Cpu/CpuAttention.h"
#include "runtime/Core/Kinds.h"

namespace heddle {

/// Dense tensors in the layouts of Kinds.h; sizes and pattern as CpuAttentionArgs has them. Roles that nobody gives are
/// null.
struct CpuCall : CpuAttentionArgs {
  const JitPattern *pattern = nullptr;      ///< of kinds that walk one
  DType outDtype = DType::fp32;             ///< RoleElement::outDtype
  std::array<void *, kRoleCount> role = {}; ///< addresses; those that are read are not written

  template <class T> T *as(Role wanted) const { return static_cast<T *>(role[size_t(wanted)]); }
};

/// Thread safe. invalidArgument, before anything is written, if sizes do not fit together.
using CpuFunction = Status (*)(const CpuCall &call);

/// Of a kind of Kinds.h.
CpuFunction cpuFunctionOf(const KindSpec &kind);

} // namespace heddle

#endif
