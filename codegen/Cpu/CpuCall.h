// Owns what a call of any kind is for the processors of this machine: its tensors by role, its sizes, and the pattern
// where the kind walks one.
#pragma once

#include "runtime/Core/CallShape.h"

#include <functional>
#include <optional>

namespace heddle {

class JitPattern;

/// Element strides of batch, row and head; the last dimension is contiguous, of key-major values that of rows.
using CpuStrides = std::array<int64_t, 3>;

struct CpuCall {
  const JitPattern *pattern = nullptr; ///< outlives the call
  CallElements elements = CallElements(DType::fp32);
  Adds adds = Adds::none;         ///< Kind::adds
  bool hasKeyMajorValues = false; ///< Kind
  /// Addresses in the layouts of Kinds.h; null: not given. Those that are only read are not written.
  std::array<void *, kRoleCount> role = {};
  std::array<std::optional<CpuStrides>, kRoleCount> stride = {}; ///< of tensors; nothing: dense
#define HEDDLE_CPU_SIZE(identifier, name, unsaid) int32_t identifier = unsaid;
  HEDDLE_SIZES(HEDDLE_CPU_SIZE, HEDDLE_CPU_SIZE)
#undef HEDDLE_CPU_SIZE
  int32_t qOrigin = 0, kOrigin = 0;
  float scale = 1.0f;
  std::vector<int32_t> params; ///< the pattern's run-time sizes; of a tensor, its length
  /// Those of a pattern of parts that say where the whole ends; else none. Of kind decode each sequence has words of its own.
  std::vector<int64_t> wholes;
  /// The pattern's tensors, in the order of PatternInfo::operands; row-major, of the extents that its ops say.
  std::vector<const void *> operands;
  /// What a backward call writes beside its roles: the gradient of a number or tensor of the pattern, in fp32, row-major.
  struct ArgumentGradient {
    int argument;
    float *address;
    int64_t elements;
    bool hasQueryRows; ///< an element belongs to one row of q
  };
  std::vector<ArgumentGradient> argumentGradients;
  int32_t blockM = 64, blockN = 64;
  int threads = 0; ///< 0: one per processor
  /// Where the call is one sequence of another one: its number there, which the pattern takes as the batch; rows that a
  /// head has in lse (0: seqlenQ); its row of the table of pages, null where it has none; and, where that is of one kv
  /// head, the first of its query heads and how many these are (0: all heads).
  int32_t sequence = 0, lseRows = 0, firstHead = 0, ownHeads = 0;
  const int32_t *pagesOfKeys = nullptr;

  void give(Role to, const void *address, std::optional<CpuStrides> strides = {}) {
    role[size_t(to)] = const_cast<void *>(address);
    stride[size_t(to)] = strides;
  }
  template <class T> T *as(Role wanted) const { return static_cast<T *>(role[size_t(wanted)]); }

  /// What elements of q, k or v in that row of a head are multiplied by; 1 where they have no scales.
  float descaleOf(Role factors, int32_t batch, int32_t head, int64_t row = 0) const;

  int32_t &sizeOf(RoleExtent extent); ///< none for `one`
  int32_t sizeOf(RoleExtent extent) const { return const_cast<CpuCall *>(this)->sizeOf(extent); }
  /// All sizes, by the table of roles.
  void setSizes(const std::function<int64_t(RoleExtent)> &sizeIn);
  DType elementOf(Role wanted) const { return elements.of(specOf(wanted).element); }
  /// The strides of [batch, rows, heads, dim]; of key-major values as well, whose elements lie stepOf apart.
  CpuStrides stridesOf(Role wanted) const;
  /// From an element of a row to the next one.
  int64_t stepOf(Role wanted) const;
  bool isKeyMajor(Role wanted) const; ///< Rows::keyMajor
  /// `count` elements of a row of the tensor, from `offset` on, as fp32.
  void load(Role from, int64_t offset, int64_t count, float *values) const;
  /// The inverse, rounded to that type.
  void store(Role to, DType dtype, const float *values, int64_t offset, int64_t count) const;
  /// In k or v, whose strides these are, to a key of a kv head, in elements.
  int64_t offsetOfKey(const CpuStrides &strides, int32_t ofBatch, int64_t index, int32_t head) const {
    const int64_t lead = pagesOfKeys ? pagesOfKeys[index / pageSize] : ofBatch,
                  row = pagesOfKeys ? index % pageSize : index;
    return lead * strides[0] + row * strides[1] + head * strides[2];
  }
};

/// What was computed, summed over batch, heads and branches.
struct CpuAttentionCounts {
  int64_t visitedTiles = 0, fullTiles = 0;
  /// Pairs of an existing row and an existing key in visited tiles: 2 * (headDim + valueDim)
  /// operations each.
  int64_t computedPairs = 0;
};

} // namespace heddle
