#pragma once

#include "codegen/Config/ConfigView.h"
#include "codegen/Config/ForwardConfig.h"
#include "codegen/Skeletons/Shared/sm90_layout.cuh"

namespace heddle {

struct ScheduleFacts;

namespace sm90 {

inline constexpr int64_t kLeastRegisters = 24, kMostRegisters = 240; // of setmaxnreg

} // namespace sm90

struct Sm90Config : ForwardConfig {
  int64_t queryStages = 1; ///< query tiles in shared memory at a time
  int64_t turnTaking = 0;  ///< 1: warpgroups issue their products in turn
  int64_t grid = 0;        ///< how work items are dealt out: 0 tile, 1 stride, 3 dynamic
  /// 0 online: every tile may raise a row's maximum; 1 anchored: only masked tiles may
  int64_t softmax = 0;
  int64_t splitLast = 0; ///< 1: items of the last, incomplete round of the grid are cut into parts
  /// items with a range of at least twice this many key tiles are cut into parts; 0: none
  int64_t splitTiles = 0;
  int64_t turnValues = 0; ///< 1: values of bytes that lie row by row are turned over once, for all blocks
  int64_t flushTiles = 0; ///< of bytes: key tiles after which the output is added to totals in fp32; 0: of others
  int64_t totals = 0;     ///< where these lie: 0 in shared memory, 1 in the workspace
  int64_t producerRegisters = 32;  ///< of a thread of the producing warpgroup, after launch
  int64_t consumerRegisters = 232; ///< of a thread of the other warpgroups, after launch

  Sm90Config() { warps = 12; } // two consuming warpgroups and one that produces
  Sm90Config(const KernelConfig &config) { readFields(config, *this); }
  operator KernelConfig() const { return writeFields(*this); }

  static const FieldsOf<Sm90Config> &fields();
};

ScheduleFacts sm90Schedule(const Sm90Config &config);

} // namespace heddle
