// Owns the numbers of `heddle explain`: pairs, tiles, operations, bytes and the time that a named GPU needs at
// least. Everything comes from the analysis; no kernel is compiled and no GPU is needed.
#pragma once

#include "compiler/Io/AttentionInputs.h"
#include "compiler/Io/OperandTensor.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Views/Cliff.h"
#include "compiler/Views/ConfigChoices.h"
#include "compiler/Views/KeptPairs.h"
#include "runtime/Core/DType.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle {
struct GpuModel;
} // namespace heddle

namespace heddle::views {

using attn::WideInt;

struct ExplainRequest {
  Kind kind = {}; ///< of the call whose operations, bytes and workspace are told
  attn::ProblemSizes sizes;
  int64_t batch = 1, kvHeads = 1, headDim = 128, valueDim = 128;
  DType dtype = kDefaultDType;
  Precision precision = Precision::exact; ///< of products of fp32
  attn::TileShape tile;
  const GpuModel *gpu = nullptr; ///< never null
  Operands operands = {};        ///< tensors that the pattern reads, as far as they are given
  PairEffort pairs = {};         ///< of what has no closed form
};

/// Tells of tiles of queries and the keys that they visit, or of tiles of keys and their queries.
struct DirectionExplanation {
  int64_t columnRate = 1;
  bool isMasked = false;
  std::string reason;                 ///< why it is masked, or what is visited beyond the kept tiles; may be empty
  std::vector<std::string> whyMasked; ///< of each piece; empty: tiles are found in closed form, or in a list
};

struct BranchExplanation {
  DirectionExplanation forward, transposed;
  std::vector<std::string> pieces; ///< in words
  std::vector<bool> isListed;      ///< each piece: its keys are those of a list
};

/// The heads that take the same operand of every attn.heads.
struct VariantExplanation {
  int64_t firstHead = 0, heads = 0; ///< heads 0: no head takes this group
  int64_t queryRate = 1;
  std::vector<BranchExplanation> branches;
};

/// One kernel of the pattern's passes (the knob `chained_mib`).
struct PassExplanation {
  std::vector<int64_t> queryRates; ///< of its rows, for each choice of head groups
  attn::TileCounts tiles;
};

struct Roofline {
  double matrixTflops = 0; ///< of the GPU, for products of the call's elements
  double ms = 0, computeMs = 0, memoryMs = 0;
  bool isComputeBound = true;
};

/// What the tensor cores sum before it goes on in fp32, where they do not sum in fp32 themselves.
struct SumsExplanation {
  int64_t keys = 0; ///< of a row, at most
  double loss =
      0; ///< the share that sums of as many weights lose at most, as measured on Hopper of standard normal scores
};

/// A part of the workspace, by its name in the plan. Regions whose lives do not meet may lie in the same bytes.
struct RegionExplanation {
  std::string name, formula; ///< of bytes, as LaunchExpr::str
  int64_t bytes;
};

struct WorkspaceExplanation {
  int64_t bytes = 0;
  std::vector<RegionExplanation> regions;
};

/// What a call of the plan takes. unsupported: a size is negative or far too large.
Result<WorkspaceExplanation> workspaceOf(const LaunchPlan &plan, const LaunchSymbols &symbols);

/// Counts of pairs and tiles are of one batch element, summed over the query heads; flops, bytes, workspace and the
/// roofline are of the whole call.
struct Explanation {
  std::string gpu, gpuFullName;     ///< GpuModel::name, fullName
  std::optional<WideInt> keptPairs; ///< a pair that n branches keep counts n times
  std::string keptPairsNote;        ///< how they were counted, or why they were not
  attn::TileCounts tiles, transposedTiles;
  std::optional<double> density;        ///< kept pairs / (heads * seqlen_q * seqlen_k); 0 for empty problems
  std::optional<double> tileEfficiency; ///< kept pairs / (visited tiles * block_m * block_n)
  std::optional<Cliff> cliff;           ///< why the tile efficiency is low, where it is
  std::optional<WideInt> flops;         ///< 2 (head_dim + value_dim) for each kept pair
  WideInt bytes = 0;                    ///< q, k, v read once, out and lse written once
  std::optional<WorkspaceExplanation> workspace;
  std::string workspaceNote;           ///< why there is none
  std::optional<SumsExplanation> sums; ///< of the default configuration, for e4m3
  std::vector<PassExplanation> passes; ///< in the order of their launches; none: the pattern has one pass
  std::string whyOnePass;
  std::optional<int64_t> chainedWorkspaceBytes; ///< of the default configuration with `chained_mib` = chainedMib
  int64_t chainedMib = 0;
  std::optional<Roofline> roofline;
  std::vector<VariantExplanation> variants;
};

/// Fails with a diagnostic if a predicate has no form on this machine.
Result<Explanation> explain(const PatternFile &file, const ExplainRequest &request);

/// Its part that asks for kernels: workspace, passes and what is said of them.
void explainKernel(const PatternFile &file, const ExplainRequest &request, Explanation &result);

/// The configurations of kernels for these sizes.
ConfigChoices configChoicesOf(const PatternFile &file, const ExplainRequest &request);

} // namespace heddle::views
