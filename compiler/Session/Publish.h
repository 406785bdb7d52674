// Owns how a compiled kernel that nobody tuned is filed: as the default for its architecture, and its pattern's name.
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

/// A provisional kernel: the default of the least particular skeleton that serves the request, which compiles soonest
/// and serves while better ones compile. Its record says so if another skeleton is preferred.
Result<CompiledVariant> compileProvisional(const PreparedPattern &prepared, const KernelRequest &request);
/// The record is that of a provisional kernel, whose default is yet to be compiled.
bool isProvisional(const KernelRecord &record);

/// If the store has nothing that runs `wanted`, files a provisional kernel, under the pattern's name as well:
/// other processes are served while a search runs. Leaves it if none compiles.
Status publishProvisional(Store &store, const PreparedPattern &prepared, const KernelRequest &request,
                          const LookupQuery &wanted, const std::string &name);

/// Leads from `name` to the pattern.
Status publishName(Store &store, const PreparedPattern &prepared, const std::string &name);

} // namespace heddle
