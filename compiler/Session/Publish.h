//===- Publish.h - kernels into the store -----------------------*- C++ -*-===//
// Owns how a compiled kernel that nobody tuned is filed: as the default for its architecture, and its pattern's name.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Session/CompileSession.h"
#include "runtime/Store/Store.h"

namespace heddle {

/// The architecture that a GPU reports, which kernels of `arch` are made for: without the letter of exact and family
/// targets.
std::string deviceArch(std::string arch);

/// Files the kernel as the untuned default of every GPU that runs it; a tuned winner is never replaced. `queries`: of
/// the calls that it was chosen for, beside the default for others; 0: of any number.
Status publishDefault(Store &store, const KernelRecord &record, int64_t queries = 0);

/// The default of the least particular skeleton that serves the request: the soonest compiled. Its record says so if
/// another skeleton is preferred.
Result<CompiledVariant> compileStopgap(const PreparedPattern &prepared, const KernelRequest &request);
/// The record stands in for a default that is yet to be compiled.
bool isStopgap(const KernelRecord &record);

/// If the store has nothing that runs `wanted`, files the stopgap, under the pattern's name as well: other processes
/// are served while a search runs. Leaves it if none compiles.
Status serveMeanwhile(Store &store, const PreparedPattern &prepared, const KernelRequest &request,
                      const LookupQuery &wanted, const std::string &name);

/// Leads from `name` to the pattern.
Status publishName(Store &store, const PreparedPattern &prepared, const std::string &name);

} // namespace heddle
