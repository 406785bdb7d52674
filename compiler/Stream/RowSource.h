// Owns where the rows of q, k and v of a streamed call come from: a tensor file that is read where rows are asked for, or
// numbers that are made then. Both are [batch, rows, heads, dim] of the whole sequence.
#pragma once

#include "compiler/Io/AttentionInputs.h"
#include "compiler/Io/RandomTensor.h"
#include "compiler/Io/Safetensors.h"
#include "runtime/Core/GroupPlan.h"

#include <memory>

namespace heddle {

/// Rows of some consecutive heads of some consecutive batch elements.
struct RowBlock {
  Role role = Role::q;
  int64_t firstBatch = 0, batches = 1;
  RowRun rows;
  int64_t firstHead = 0, heads = 1;
};

/// Thread safe.
class RowSource {
public:
  virtual ~RowSource() = default;

  AttentionSizes sizes;
  DType dtype = kDefaultDType;

  /// Elements of one head of a row, and of all heads.
  int64_t dimOf(Role role) const { return sizes.of(specOf(role).dim); }
  int64_t headsOf(Role role) const { return sizes.of(specOf(role).heads); }
  int64_t bytesOf(const RowBlock &block) const;

  /// [batch, rows, heads, dim] without gaps, to host memory; whole tensors have the block.
  virtual Status read(const RowBlock &block, void *to) const = 0;
  /// Why the rows lie where they lie, for people: "qkv.safetensors", "seed 3".
  virtual std::string name() const = 0;

protected:
  /// Row-major number of the first element of the block in a row of a batch element.
  int64_t elementOf(const RowBlock &block, int64_t batch, int64_t row) const;
};

/// Reads a file that need not fit into memory. The failures of readAttentionInputs.
class FileRows final : public RowSource {
public:
  static Result<std::unique_ptr<RowSource>> open(const std::string &path);
  Status read(const RowBlock &block, void *to) const override;
  std::string name() const override { return file.path(); }

private:
  explicit FileRows(SafetensorsFile file) : file(std::move(file)) {}
  SafetensorsFile file;
};

/// The tensors of randomAttentionInputs of this seed, of which no other element is made.
class RandomRows final : public RowSource {
public:
  /// invalidArgument: as randomAttentionInputs, but of any length that positions reach.
  static Result<std::unique_ptr<RandomRows>> create(const AttentionSizes &sizes, DType dtype, uint64_t seed);
  Status read(const RowBlock &block, void *to) const override;
  std::string name() const override { return "random numbers of seed " + std::to_string(seed); }
  const RandomStream &streamOf(Role role) const { return role == Role::q ? q : role == Role::k ? k : v; }
  /// Counted in the whole tensor: what a block needs to be made anywhere.
  int64_t firstElement(const RowBlock &block) const { return elementOf(block, block.firstBatch, block.rows.first); }

private:
  RandomRows(uint64_t seed) : seed(seed), q(seed, "q"), k(seed, "k"), v(seed, "v") {}
  uint64_t seed;
  RandomStream q, k, v;
};

} // namespace heddle
