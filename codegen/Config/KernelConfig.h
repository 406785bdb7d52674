//===- KernelConfig.h - the answer: one schedule of a kernel ---------------------===//
//
// One struct with one field list. Text, JSON, digest, device constants, search coordinates and
// parsing are all derived from fields(); a new schedule choice is one member, one line of the list
// and one knob of the skeleton that reads it. Numbers of a field never change meaning: stored
// records refer to them. A field that a skeleton does not read is 0.
//
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_CODEGEN_CONFIG_KERNELCONFIG_H
#define HEDDLE_CODEGEN_CONFIG_KERNELCONFIG_H

#include "runtime/Core/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle {

struct KernelConfig {
  std::string skeleton;          ///< Skeleton::name()
  int64_t blockM = 0;            ///< query rows of one block
  int64_t blockN = 0;            ///< keys of one tile
  int64_t chunkN = 0;            ///< keys whose scores are in registers at a time
  int64_t stages = 0;            ///< key tiles in shared memory at a time
  int64_t warps = 0;             ///< warps of one block
  int64_t minBlocks = 0;         ///< blocks of one SM that the registers must allow
  int64_t overlapScores = 0;     ///< 1: scores of the next tile are computed beside the exponentials of this one
  int64_t queryInRegisters = 0;  ///< 1: query fragments are loaded once and held; 0: read for every tile
  int64_t rescaleThreshold = 0;  ///< growth of a row's maximum, in log2 units, that is tolerated before a rescale
  int64_t compactMask = 0;       ///< 1: the predicate of partial tiles in a loop; 0: unrolled
  int64_t rasterHeads = 0;       ///< (batch, head) pairs whose query tiles of one number run side by side
  int64_t rasterReversed = 0;    ///< 1: query tiles in descending order; 0: ascending
  int64_t queryStages = 0;       ///< query tiles in shared memory at a time
  int64_t turnTaking = 0;        ///< 1: warpgroups issue their products in turn
  int64_t grid = 0;              ///< how work items are dealt out: 0 tile, 1 stride, 2 snake, 3 dynamic
  int64_t softmax = 0;           ///< 0 online: every tile may raise a row's maximum; 1 anchored: only masked tiles may
  int64_t splitLast = 0;         ///< 1: items of the last, incomplete round of the grid are cut into parts
  int64_t splitTiles = 0;        ///< items with a range of at least twice this many key tiles are cut into parts; 0: none
  int64_t producerRegisters = 0; ///< of a thread of the producing warpgroup, after launch
  int64_t consumerRegisters = 0; ///< of a thread of the other warpgroups, after launch
  int64_t rasterMib = 0;         ///< K and V of the (batch, head) pairs that run side by side, in MiB
  int64_t chainedMib = 0;        ///< MiB of fp32 outputs that kernels hand over at a time, one for each row lattice; 0: one kernel
  int64_t documentTiles = 0;     ///< 1: documents have query tiles of their own; 0: tiles run over their borders

  template <class F> static void fields(F &&f) {
    f("skeleton", &KernelConfig::skeleton);
    f("block_m", &KernelConfig::blockM);
    f("block_n", &KernelConfig::blockN);
    f("chunk_n", &KernelConfig::chunkN);
    f("stages", &KernelConfig::stages);
    f("warps", &KernelConfig::warps);
    f("min_blocks", &KernelConfig::minBlocks);
    f("overlap_scores", &KernelConfig::overlapScores);
    f("query_in_registers", &KernelConfig::queryInRegisters);
    f("rescale_threshold", &KernelConfig::rescaleThreshold);
    f("compact_mask", &KernelConfig::compactMask);
    f("raster_heads", &KernelConfig::rasterHeads);
    f("raster_reversed", &KernelConfig::rasterReversed);
    f("query_stages", &KernelConfig::queryStages);
    f("turn_taking", &KernelConfig::turnTaking);
    f("grid", &KernelConfig::grid);
    f("softmax", &KernelConfig::softmax);
    f("split_last", &KernelConfig::splitLast);
    f("split_tiles", &KernelConfig::splitTiles);
    f("producer_registers", &KernelConfig::producerRegisters);
    f("consumer_registers", &KernelConfig::consumerRegisters);
    f("raster_mib", &KernelConfig::rasterMib);
    f("chained_mib", &KernelConfig::chainedMib);
    f("document_tiles", &KernelConfig::documentTiles);
  }

  int64_t threads() const { return 32 * warps; }

  /// Canonical text, "name=value" per line in list order; what records and digests hold.
  std::string str() const;
  /// SHA-256 of str().
  std::string digest() const;
  /// {"skeleton":"...","block_m":128,...} without blanks.
  std::string json() const;
  /// "block_m=128 block_n=64 ..." in one line, numbers only; for messages.
  std::string summary() const;

  /// The inverse of str(): every field once, in any order. Otherwise invalidArgument naming the
  /// line, with the fields that exist.
  static Result<KernelConfig> parse(std::string_view text);

  /// The numeric fields in list order: coordinates for a search.
  std::vector<std::pair<std::string, int64_t>> coordinates() const;
  /// Sets a numeric field by its name in the list. Unknown: notFound with the names that exist.
  Status set(std::string_view field, int64_t value);
  /// The value of a numeric field. Unknown: notFound with the names that exist.
  Result<int64_t> get(std::string_view field) const;

  bool operator==(const KernelConfig &other) const { return str() == other.str(); }
  bool operator!=(const KernelConfig &other) const { return !(*this == other); }
};

/// Spelling of a field as a device constant: "block_m" is "kBlockM".
std::string deviceConstantName(std::string_view field);

} // namespace heddle

#endif // HEDDLE_CODEGEN_CONFIG_KERNELCONFIG_H
