// Owns the convention for tensor files of attention: each tensor under the name of its role, in the shape that
// runtime/Core/Kinds.h gives it; q, k, v, out and their gradients of one dtype, or out in fp32. lse is a natural
// logarithm.
#pragma once

#include "compiler/Io/HostTensor.h"
#include "compiler/Io/OperandTensor.h"
#include "runtime/Core/CallShape.h"
#include "runtime/Core/Status.h"
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace heddle {

struct AttentionSizes {
#define HEDDLE_ATTENTION_SIZE(identifier, name, unsaid) int64_t identifier = unsaid;
  HEDDLE_SIZES(HEDDLE_ATTENTION_SIZE, HEDDLE_ATTENTION_SIZE)
#undef HEDDLE_ATTENTION_SIZE

  int64_t &of(RoleExtent extent); // none for `one`
  int64_t of(RoleExtent extent) const { return const_cast<AttentionSizes *>(this)->of(extent); }
  // [lead, rows, heads, dim], or [lead, heads, rows] where dim is one; without extents that are one, and without the
  // dimension of `tables`, or of blocks, where there is one. Offsets have an element more.
  std::vector<int64_t> shapeOf(const RoleSpec &role) const;
  // Those of blocks follow from the lengths, in calls of these elements.
  AttentionSizes inBlocksOf(const CallElements &elements) const;
};

// Tensors of the role may have so many dimensions.
bool mayHaveRank(const RoleSpec &role, size_t rank);

// Sizes as tensors give them: each comes from the first one that has it.
class SizesOfTensors {
public:
  // The shape that a tensor of the role must have, of which `shape`, of as many dimensions, says what is not known yet.
  std::vector<int64_t> expected(const RoleSpec &role, const std::vector<int64_t> &shape);

  AttentionSizes sizes;

private:
  uint32_t known = 0; // bits of RoleExtent
};

// The roles that every call of a kind reads, or writes, or both.
std::vector<RoleSpec> rolesOf(const Kind &kind, Access access);

// "[batch, seqlen_q, heads, head_dim]"
std::string shapeWords(const RoleSpec &role);

// A tensor for each role, empty where a call has none.
struct RoleTensors {
#define HEDDLE_ROLE_TENSOR(identifier, ...) HostTensor identifier = {};
  HEDDLE_ROLES(HEDDLE_ROLE_TENSOR)
#undef HEDDLE_ROLE_TENSOR

  HostTensor &of(Role role);
  const HostTensor &of(Role role) const { return const_cast<RoleTensors *>(this)->of(role); }
  bool isGiven(Role role) const { return !of(role).shape.empty(); }
};

// "tensor 'q' is bf16 [2, 3]"
std::string describe(const char *name, const HostTensor &tensor);

// Zero-filled, for these results of a call, or those of every call of the kind.
RoleTensors emptyResultsOf(const std::vector<RoleSpec> &written, const AttentionSizes &sizes,
                           const CallElements &elements);
inline RoleTensors emptyResultsOf(const Kind &kind, const AttentionSizes &sizes, const CallElements &elements) {
  return emptyResultsOf(rolesOf(kind, Access::write), sizes, elements);
}

struct AttentionInputs : RoleTensors {
  AttentionSizes sizes; // derived from the shapes
  Kind kind = {};
  Precision precision = Precision::exact; // that the call is to have of products
  int64_t scaleRows = 0;                  // CallElements; of what reads scales, which their shapes say
  DType dtype() const { return of(kind.roles().front().role).dtype; }
  // The type of out, where nobody asks for another.
  DType outDType() const { return CallElements::outOf(dtype()); }
  // Of the call, with out of that type; nothing: of outDType().
  CallElements elements(std::optional<DType> out = {}) const;
  // What elements of q, k or v in that row are multiplied by; 1 where they have no scales.
  float descaleOf(Role role, int64_t batch, int64_t head, int64_t row = 0) const;
  // So many rows of q and k share a scale; of what writes scales.
  void setScaleRows(int64_t rows);
  std::vector<RoleSpec> given() const; // of what the kind reads
  // What the call writes: all that every call of the kind does, and optional results for which there is a tensor here.
  std::vector<RoleSpec> written() const;
};

// emptyResultsOf a call, or, of what it adds to, what its inputs have.
RoleTensors resultsBefore(const AttentionInputs &inputs, DType outDType);

// Sizes are at most 2^31, and a tensor of the call has at most 2^40 elements. Shapes and dtypes must agree as above, optional roles and what comes from a forward call (Kind::takesFromForward) may lack; heads must be a multiple of kvHeads. The message names
// the tensor, what was expected and what was found.
Result<AttentionInputs> makeAttentionInputs(RoleTensors tensors, const Kind &kind = {});

// Reads the tensors that a call reads and checks them; messages also name the file.
Result<AttentionInputs> readAttentionInputs(const std::string &path, const Kind &kind = {});

// What random tensors are made beside those that every call of a kind reads, and who is told how far they are, from 0
// to 1.
struct RandomInputs {
  std::vector<Role> also =
      {}; // optional roles; cuSeqlensK: keys of sequences lie in rows; kvIndptr: tables behind each other
  std::function<void(double share)> progress = {};
  std::optional<DType> keys = {}; // the type of k and v; nothing: that of q
  int64_t scaleRows = 0;          // CallElements
};

// Standard normal tensors, a pure function of (sizes, dtype, seed): RandomTensor.h; beside elements that are scaled, scales
// from 1/2 to 1. None of what comes from a forward call. There is a sequence for each batch element.
Result<AttentionInputs> randomAttentionInputs(const AttentionSizes &sizes, DType dtype, uint64_t seed,
                                              const Kind &kind = {}, const RandomInputs &random = {});

// What the inputs lack of what comes from a forward call.
std::vector<RoleSpec> missingOfForward(const AttentionInputs &inputs);

// Gives the inputs that. `forward` computes a forward call on them, as inputs of kind forward; it is not called where
// nothing is missing.
Status addFromForward(AttentionInputs &inputs,
                      const std::function<Result<RoleTensors>(const AttentionInputs &inputs)> &forward);

// Writes what the call reads, and tensors of a pattern by name; seed and generator are noted in the file's metadata.
Status writeAttentionInputs(const std::string &path, const AttentionInputs &inputs, uint64_t seed,
                            const std::map<std::string, OperandTensor> &operands = {});

// Writes what a call of the kind writes, and gradients of arguments of a pattern by name.
Status writeAttentionOutputs(const std::string &path, const RoleTensors &results, const Kind &kind = {},
                             const std::map<std::string, const HostTensor *> &argumentGradients = {});

} // namespace heddle
