// Owns the order of the stages behind the pattern file: schedule, emission (once per pattern), then request,
// configuration, source and NVRTC (once per variant). The second half knows no MLIR: a tuner prepares a pattern
// once and compiles many variants of it from several threads.
#pragma once

#include "codegen/Emit/PatternInfo.h"
#include "compiler/Session/KernelShape.h"
#include "compiler/Pattern/StageTimes.h"
#include "runtime/Core/Kinds.h"
#include "runtime/Core/KernelRecord.h"
#include "runtime/Core/Status.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace heddle {

class PatternFile;
class KernelConfig;
struct KernelRequest;
struct KernelSource;
struct PreparedPattern;

/// "heddle" and its version (CMakeLists.txt), which a change of emission, skeletons or defaults that makes tuned winners
/// misleading raises.
extern const char *const kGenerator;

/// One compiled kernel, ready for the store, and where the time went.
struct CompiledVariant {
  KernelRecord record;
  StageTimes times;      ///< source, nvrtc (to PTX), ptxas
  bool wasKnown = false; ///< its code came from KnownKernels
};

/// Where code may be had that need not be compiled again: the record of a content key, which says that nothing else would
/// come of it; notFound: compile it. May be empty; several threads ask at once.
using KnownKernels = std::function<Result<KernelRecord>(const std::string &contentKey)>;

/// For which configurations a preparation makes the functions of passes: they take as long to make as those of the
/// whole pattern, and few unions are chained by default.
enum class PassFunctions { ofAll, ofDefaults };

/// The stages that need MLIR. Walk::both: for kernels of backward kinds, which have no passes. invalidArgument with
/// rendered diagnostics if something has no form on the device.
Result<PreparedPattern> preparePattern(const PatternFile &file, PassFunctions passes = PassFunctions::ofAll,
                                       Walk walk = Walk::queries);

// Everything below is thread safe and knows no MLIR.

KernelRequest makeRequest(const PreparedPattern &prepared, const KernelShape &shape);

/// What winners and records of this request are filed under.
KernelFamily familyOf(const PreparedPattern &prepared, const KernelRequest &request);

/// Changes that change nothing, for who means the default and not what databases have.
inline constexpr const char *kDefaultChanges = "default";

/// `text` is "block_m=128,reduce=ordered", changes to the default of `request`, or every field; "skeleton=NAME" among them
/// starts from that skeleton's default; kDefaultChanges is that default. Fields that follow from others do so unless they are given. notFound: no such
/// field or skeleton.
Result<KernelConfig> parseConfig(const KernelRequest &request, const std::string &text);

/// The whole CUDA text with its headers, of the kernels of all launches, in order: one, or those of the passes. `config`
/// may be infeasible only if it was not validated: it is validated here.
Result<std::vector<KernelSource>> variantSources(const PreparedPattern &prepared, const KernelRequest &request,
                                                 const KernelConfig &config);

/// Source, PTX, cubin, record. unsupported: infeasible, or the compiler spilled; unavailable: no NVRTC. Of several
/// kernels the record has the most registers, spills and shared memory.
Result<CompiledVariant> compileVariant(const PreparedPattern &prepared, const KernelRequest &request,
                                       const KernelConfig &config, const KnownKernels &known = {});

// The same for callers that only pass configurations through, so that they need not know their fields. `changes` is
// what parseConfig takes; empty is the default.

/// What people and reports say of a configuration.
struct ConfigSummary {
  std::string skeleton;
  std::string text, json, line; ///< KernelConfig::str, json, summary
  int64_t blockM = 0, blockN = 0;
  std::vector<Role> addedInAnyOrder = {}; ///< as ScheduleFacts
};

KernelFamily familyOf(const PreparedPattern &prepared, const KernelShape &shape);
/// Validated.
Result<ConfigSummary> configFor(const PreparedPattern &prepared, const KernelShape &shape, const std::string &changes);
/// Of KernelRecord::config. invalidArgument: the text is not what this program writes.
Result<ConfigSummary> summarizeConfig(const std::string &stored);
Result<std::vector<KernelSource>> variantSources(const PreparedPattern &prepared, const KernelShape &shape,
                                                 const std::string &changes);
/// Without changes: the default of the first skeleton that the compiler serves without spills and warnings; the
/// record's note says why preferred ones were passed over. What stands behind a refused one is compiled by up to
/// `threads` threads (0: one for each processor), whose number changes no kernel.
Result<CompiledVariant> compileVariant(const PreparedPattern &prepared, const KernelShape &shape,
                                       const std::string &changes, int threads = 0, const KnownKernels &known = {});

/// What parseConfig takes, of KernelConfig::str.
using ChangeConfig = std::function<std::string(const std::string &config)>;
/// As without changes, of what `change` makes of each default.
Result<CompiledVariant> compileChangedDefault(const PreparedPattern &prepared, const KernelShape &shape,
                                              const ChangeConfig &change);

} // namespace heddle
