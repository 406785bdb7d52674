#include "codegen/Config/ChainedLaunch.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "codegen/Target/FindArch.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Views/Explanation.h"
#include "runtime/Core/KernelRecord.h"

#include <algorithm>

namespace heddle::views {

using namespace heddle::attn;

/// What a kernel for these sizes is asked to be.
static KernelRequest kernelRequestOf(const PatternFile &file, const ExplainRequest &request,
                                     const PassesOfFile &passes) {
  KernelRequest kernel;
  kernel.kind = request.kind;
  Result<const GpuArch *> arch = findGpuArch(request.gpu->arch);
  if (arch)
    kernel.arch = *arch;
  kernel.elements = CallElements(request.dtype);
  kernel.headDim = request.headDim;
  kernel.valueDim = request.valueDim;
  static_cast<PatternRates &>(kernel) = ratesOf(file, passes);
  if (request.sizes.seqlenQ)
    kernel.balance.queries = ProblemBucket::rowsOfDefault(request.sizes.seqlenQ, kernel);
  return kernel;
}

ConfigChoices configChoicesOf(const PatternFile &file, const ExplainRequest &request) {
  return configChoices(kernelRequestOf(file, request, PassesOfFile(file)));
}

static LaunchSymbols symbolsOf(const ExplainRequest &request) {
  LaunchSymbols symbols;
  symbols[LaunchSymbol::batch] = request.batch;
  symbols[LaunchSymbol::heads] = request.sizes.heads;
  symbols[LaunchSymbol::kvHeads] = request.kvHeads;
  symbols[LaunchSymbol::seqlenQ] = request.sizes.seqlenQ;
  symbols[LaunchSymbol::seqlenK] = request.sizes.seqlenK;
  symbols[LaunchSymbol::headDim] = request.headDim;
  symbols[LaunchSymbol::valueDim] = request.valueDim;
  symbols[LaunchSymbol::smCount] = request.gpu->smCount;
  return symbols;
}

Result<WorkspaceExplanation> workspaceOf(const LaunchPlan &plan, const LaunchSymbols &symbols) {
  HEDDLE_ASSIGN(const WorkspaceLayout layout, evaluateWorkspace(plan, symbols));
  WorkspaceExplanation workspace{layout.totalBytes, {}};
  for (size_t i = 0; i < plan.regions.size(); ++i)
    workspace.regions.push_back({plan.regions[i].name, plan.regions[i].bytes.str(), layout.bytes[i]});
  return workspace;
}

static void explainWorkspace(const ExplainRequest &request, const KernelRequest &kernel, Explanation &result) {
  Result<LaunchPlan> plan = defaultLaunchPlan(kernel);
  if (!plan) {
    result.workspaceNote = plan.status().message();
    return;
  }
  Result<WorkspaceExplanation> workspace = workspaceOf(*plan, symbolsOf(request));
  if (workspace)
    result.workspace = workspace.take();
  else
    result.workspaceNote = workspace.status().message();
}

/// Hopper's products of e4m3 cut what lies some 13 bits below the sum. Of sums of weights of standard normal scores 0.05, 0.3, 0.75, 1.2
/// and 2.4% were lost where totals were of 384, 768, 1,152, 1,536 and 2,304 keys: a share that grows with their square. A run of
/// tiles may end with a total of one tile more.
static void explainSums(const KernelRequest &kernel, Explanation &result) {
  constexpr double kLossOfKey = 5.7e-9;
  Result<KernelConfig> config = defaultConfig(kernel);
  if (!config || config->valueOf("flush_tiles") == 0)
    return;
  const int64_t keys = (config->valueOf("flush_tiles") + 1) * config->valueOf("block_n");
  result.sums = SumsExplanation{keys, std::min(1.0, kLossOfKey * double(keys) * double(keys))};
}

static void explainPasses(const ExplainRequest &request, const KernelRequest &kernel,
                          const std::vector<PatternFile::Pass> &passes, Explanation &result) {
  for (const PatternFile::Pass &pass : passes) {
    PassExplanation &said = result.passes.emplace_back();
    for (const Variant &variant : pass.analysis.variants)
      said.queryRates.push_back(variant.forward.rowRate);
    said.tiles = countTiles(pass.analysis, request.sizes, request.tile, Direction::Forward);
  }
  if (passes.empty() || request.kind.isBackward()) // whose kernels know no passes
    return;
  result.chainedMib = kChainedMib[1];
  Result<LaunchPlan> plan = chainedLaunchPlan(kernel);
  Result<WorkspaceLayout> layout =
      plan ? evaluateWorkspace(*plan, symbolsOf(request)) : Result<WorkspaceLayout>(plan.status());
  if (layout)
    result.chainedWorkspaceBytes = layout->totalBytes;
}

void explainKernel(const PatternFile &file, const ExplainRequest &request, Explanation &result) {
  const PassesOfFile passes(file);
  result.whyOnePass = passes.whyNone;
  const KernelRequest kernel = kernelRequestOf(file, request, passes);
  explainWorkspace(request, kernel, result);
  explainSums(kernel, result);
  explainPasses(request, kernel, passes.passes, result);
}

} // namespace heddle::views
