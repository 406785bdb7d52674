// Sizes and shapes of the tensors of calls, by the tables of runtime/Core/Kinds.h. Which extents tensors may leave out is
// said here alone.
#include "compiler/Io/AttentionInputs.h"
#include "runtime/Core/CallChecks.h"

#include <algorithm>

namespace heddle {

constexpr int64_t AttentionSizes::*kMembers[] = {
#define HEDDLE_ATTENTION_SIZE(identifier, ...) &AttentionSizes::identifier,
    HEDDLE_SIZES(HEDDLE_ATTENTION_SIZE, HEDDLE_ATTENTION_SIZE)
#undef HEDDLE_ATTENTION_SIZE
};

int64_t &AttentionSizes::of(RoleExtent extent) { return this->*kMembers[size_t(extent)]; }

// The extent that tensors of the role may leave out where it is 1; `one`: they have all.
static RoleExtent mayLack(const RoleSpec &role) {
  for (RoleExtent extent : extentsOf(role))
    if (extent == RoleExtent::tables || extent == RoleExtent::qBlocks || extent == RoleExtent::kBlocks)
      return extent;
  return RoleExtent::one;
}

// Of a tensor with so many dimensions.
static std::vector<RoleExtent> extentsOf(const RoleSpec &role, size_t rank) {
  std::vector<RoleExtent> extents = heddle::extentsOf(role);
  if (extents.size() == rank + 1)
    extents.erase(std::remove(extents.begin(), extents.end(), mayLack(role)), extents.end());
  return extents;
}

static bool isOne(const AttentionSizes &sizes, RoleExtent extent) {
  return extent != RoleExtent::one && sizes.of(extent) == 1;
}

static std::vector<int64_t> shapeOf(const AttentionSizes &sizes, const RoleSpec &role,
                                    const std::vector<RoleExtent> &extents) {
  std::vector<int64_t> shape;
  for (RoleExtent extent : extents)
    shape.push_back(sizes.of(extent));
  if (role.form == RoleForm::offsets)
    ++shape.back();
  return shape;
}

std::vector<int64_t> AttentionSizes::shapeOf(const RoleSpec &role) const {
  const size_t rank = heddle::extentsOf(role).size();
  return heddle::shapeOf(*this, role, heddle::extentsOf(role, isOne(*this, mayLack(role)) ? rank - 1 : rank));
}

AttentionSizes AttentionSizes::inBlocksOf(const CallElements &elements) const {
  AttentionSizes sizes = *this;
  sizes.qBlocks = elements.scaleBlocks(seqlenQ), sizes.kBlocks = elements.scaleBlocks(seqlenK);
  return sizes;
}

std::vector<int64_t> SizesOfTensors::expected(const RoleSpec &role, const std::vector<int64_t> &shape) {
  const std::vector<RoleExtent> extents = extentsOf(role, shape.size()), all = extentsOf(role);
  const auto learn = [this](RoleExtent extent, int64_t size) {
    if (!(known >> int(extent) & 1))
      sizes.of(extent) = size;
    known |= 1u << int(extent);
  };
  if (extents != all)
    learn(mayLack(role), 1);
  for (size_t i = 0; i < extents.size(); ++i)
    learn(extents[i], shape[i] - (role.form == RoleForm::offsets));
  return shapeOf(sizes, role, isOne(sizes, mayLack(role)) ? extents : all);
}

bool mayHaveRank(const RoleSpec &role, size_t rank) { return extentsOf(role, rank).size() == rank; }

} // namespace heddle
