// Owns which tensor maps such a kernel gets, what rows they name, and the parameter block they lead.
// Change it together with sm90_params.cuh.
//
// A class of rate r holds the rows residue + r * number. For every operand and each of its rates there is a
// "short" map over the row numbers that all residues have, and, if any rate is not 1, a "long" one over the
// residues below seqlen mod r, which have one row more. Both are 5-dimensional: dim, row number, residue,
// head, batch. So no map names a row beyond the sequence. Beside key-major values, whose keys have rate 1, k has a map of its
// even rows and one of the odd ones, and v one of key, dim, 1, head, batch.
#pragma once

#include "codegen/Config/PatternRates.h"
#include "runtime/Core/LaunchPlan.h"

#include <optional>

namespace heddle {

struct ForwardConfig;
struct KernelRequest;

/// The rates that need maps, ascending, each once.
struct MapRates {
  std::vector<int64_t> query; ///< of the rows of q
  std::vector<int64_t> key;   ///< of the rows of k and v

  static MapRates of(const std::vector<VariantRates> &variants);
  /// 1 if all rates are 1, else 2.
  int64_t mapsPerRate() const;
  /// Maps of q, k and v together.
  int64_t mapCount() const;
};

/// A tensor of the call, and the rows of a tile of it.
struct MapOperand {
  Role role;
  DType type;
  LaunchSymbol rows, heads;
  int64_t dim;
  int64_t boxRows;
  std::optional<PointerSource> copy = {}; ///< of the tensor, in the workspace: [batch, head, row, dim]
};

/// Where q, k and v lie as pairs (Forward/Sm90Pairs.h), and what these are to be multiplied by.
struct PairedOperands {
  PointerSource q, k, v, queryFactors, keyFactors;
};

/// Tensors of the workspace that maps name in the place of tensors of the call.
struct OperandCopies {
  std::optional<PairedOperands> pairs;
  std::optional<PointerSource> turnedValues; ///< v as bytes [batch, head, dim, key], sm90::turnedPitch(seqlen_k) keys
  std::optional<PointerSource> turnedMarks;  ///< what of it is there
};

/// sm90::turnedPitch, of one key at least.
LaunchExpr turnedPitch(LaunchSymbol keys);

/// Appends the maps of a tensor: for each rate one, or two (`mapsPerRate`).
void appendTensorMaps(KernelLaunch &launch, const MapOperand &operand, const std::vector<int64_t> &rates,
                      int64_t mapsPerRate);

/// Work items of a launch: batch * heads * items per head, each of block_m rows.
LaunchExpr workItems(const KernelRequest &request, const ForwardConfig &config);

/// (batch, head) pairs that run side by side: as many as share `raster_mib` of K and V, 1 to batch * heads.
LaunchExpr rasterPairs(const KernelRequest &request, const ForwardConfig &config);

/// Appends maps and fields of the `KernelParams` of sm90_params.cuh to an empty launch; `schedule` is what its field
/// workspace points to, and `totals` where blocks keep those of bytes, if not in shared memory.
void appendTensorMapParams(KernelLaunch &launch, const KernelRequest &request, const ForwardConfig &config,
                           const PointerSource &schedule, const OperandCopies &copies = {},
                           const std::optional<PointerSource> &totals = {});

/// Most bytes of that parameter block, of any configuration.
int64_t tensorMapParamBytes(const KernelRequest &request, const OperandCopies &copies = {});

} // namespace heddle
