//===- Kinds.h - kinds of calls and the roles of their tensors --------------===//
// Owns the tables of DESIGN 11: the sizes of a call, what a call of each kind reads and writes, and Kind, the value by
// which everything else asks. Checks of arguments, the symbols and pointers of launch plans, tensor files, calls on the
// processors and the addresses that the driver is asked about come from them. A new size is a line of HEDDLE_SIZES, and a
// field of heddle_attention_args where no tensor has it. A new role is a line of HEDDLE_ROLES, a line in the kinds that
// have it, and a field of heddle_attention_args, which tests/unit/kinds_test.cpp holds against this. A new kind is a line
// of HEDDLE_KINDS, `<kind>OnCpu` (codegen/Cpu), its definition, `<kind>Oracle` (compiler/Oracle), and a skeleton.
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Core/Status.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// SIZE(identifier, name, unsaid): the sizes of a call. `name` is that of texts, `unsaid` what a size is where nobody says
// it. FIELD: likewise, and heddle_attention_args has an int32_t of that name; 0 there means that it is not said.
// sequences: those of a batch; of ragged rows, which are one batch element, as many as have offsets. Keys in pages: `pages`
// of them in memory, page_size keys each, at most max_pages for a sequence, which its table names (of tables behind each other,
// kv_indices, max_pages in all of them); `tables` of these each sequence has, one for all kv heads or one for each. Ragged rows
// of keys are one page. Blocks of q and k have a scale each (CallElements::scaleRows), else a head is one block. Tensors
// that people give leave out the dimension of `tables`, or of blocks, where it is 1.
#define HEDDLE_SIZES(SIZE, FIELD)                                                                                      \
  SIZE(batch, batch, 1)                                                                                                \
  SIZE(seqlenQ, seqlen_q, 0)                                                                                           \
  SIZE(seqlenK, seqlen_k, 0)                                                                                           \
  SIZE(heads, heads, 1)                                                                                                \
  SIZE(kvHeads, kv_heads, 1)                                                                                           \
  SIZE(headDim, head_dim, 0)                                                                                           \
  SIZE(valueDim, value_dim, 0)                                                                                         \
  SIZE(pages, pages, 0)                                                                                                \
  FIELD(pageSize, page_size, 0)                                                                                        \
  FIELD(maxPages, max_pages, 0)                                                                                        \
  FIELD(sequences, sequences, 0)                                                                                       \
  FIELD(tables, tables, 1)                                                                                             \
  SIZE(qBlocks, q_blocks, 1)                                                                                           \
  SIZE(kBlocks, k_blocks, 1)

// The sizes, in their order; `one` is none.
enum class RoleExtent : uint8_t {
#define HEDDLE_SIZE_NAME(identifier, ...) identifier,
  HEDDLE_SIZES(HEDDLE_SIZE_NAME, HEDDLE_SIZE_NAME)
#undef HEDDLE_SIZE_NAME
      one
};

struct SizeSpec {
  RoleExtent size;
  const char *name;
  int64_t unsaid;
  bool isField; // of heddle_attention_args
};

// In the order of RoleExtent.
constexpr SizeSpec kSizes[] = {
#define HEDDLE_SIZE_SPEC(identifier, name, unsaid) {RoleExtent::identifier, #name, unsaid, false},
#define HEDDLE_FIELD_SPEC(identifier, name, unsaid) {RoleExtent::identifier, #name, unsaid, true},
    HEDDLE_SIZES(HEDDLE_SIZE_SPEC, HEDDLE_FIELD_SPEC)
#undef HEDDLE_SIZE_SPEC
#undef HEDDLE_FIELD_SPEC
};
constexpr int kSizeCount = int(RoleExtent::one);

// ROLE(identifier, name, form, element, lead extent, row extent, head extent, dim extent): `name` is that of texts and of
// the field of heddle_attention_args. Extents are sizes of a call (RoleExtent). Tensors are [lead, rows, heads, dim] with
// strides; arrays are contiguous: [lead, heads, rows] if dim is one, else [lead, rows, heads, dim]; offsets are such an
// array with one element more, the end of the last. The lead is the batch, unless rows of a batch element are those of
// several sequences, or lie in pages that all of them share.
#define HEDDLE_ROLES(ROLE)                                                                                             \
  ROLE(q, q, tensor, q, batch, seqlenQ, heads, headDim)                                                                \
  ROLE(k, k, tensor, k, batch, seqlenK, kvHeads, headDim)                                                              \
  ROLE(v, v, tensor, v, batch, seqlenK, kvHeads, valueDim)                                                             \
  ROLE(out, out, tensor, out, batch, seqlenQ, heads, valueDim)                                                         \
  ROLE(lse, lse, array, fp32, batch, seqlenQ, heads, one)                                                              \
  ROLE(carryOut, carry_out, array, fp32, batch, seqlenQ, heads, valueDim)                                              \
  ROLE(carryLse, carry_lse, array, fp32, batch, seqlenQ, heads, one)                                                   \
  ROLE(dOut, d_out, tensor, out, batch, seqlenQ, heads, valueDim)                                                      \
  ROLE(delta, delta, array, fp32, batch, seqlenQ, heads, one)                                                          \
  ROLE(dLse, d_lse, array, fp32, batch, seqlenQ, heads, one)                                                           \
  ROLE(dQ, d_q, tensor, q, batch, seqlenQ, heads, headDim)                                                             \
  ROLE(dK, d_k, tensor, k, batch, seqlenK, kvHeads, headDim)                                                           \
  ROLE(dV, d_v, tensor, v, batch, seqlenK, kvHeads, valueDim)                                                          \
  ROLE(cuSeqlensQ, cu_seqlens_q, offsets, i32, sequences, one, one, one)                                               \
  ROLE(cuSeqlensK, cu_seqlens_k, offsets, i32, sequences, one, one, one)                                               \
  ROLE(sequsedK, seqused_k, array, i32, tables, one, sequences, one)                                                   \
  ROLE(descaleQ, descale_q, array, fp32, batch, qBlocks, heads, one)                                                   \
  ROLE(descaleK, descale_k, array, fp32, batch, kBlocks, kvHeads, one)                                                 \
  ROLE(descaleV, descale_v, array, fp32, batch, one, kvHeads, one)                                                     \
  ROLE(pageTable, page_table, array, i32, tables, maxPages, sequences, one)                                            \
  ROLE(quantizedQ, quantized_q, tensor, e4m3, batch, seqlenQ, heads, headDim)                                          \
  ROLE(quantizedK, quantized_k, tensor, e4m3, batch, seqlenK, kvHeads, headDim)                                        \
  ROLE(quantizedV, quantized_v, tensor, e4m3, batch, seqlenK, kvHeads, valueDim)                                       \
  ROLE(kMean, k_mean, array, fp32, batch, one, kvHeads, headDim)                                                       \
  ROLE(kvIndptr, kv_indptr, offsets, i32, sequences, one, one, one)                                                    \
  ROLE(kvIndices, kv_indices, array, i32, maxPages, one, one, one)                                                     \
  ROLE(kvLastPageLen, kv_last_page_len, array, i32, sequences, one, one, one)                                          \
  ROLE(sharedK, shared_k, array, i32, sequences, one, one, one)                                                        \
  ROLE(rotation, rotation, array, sign, one, one, one, headDim)                                                        \
  ROLE(kOrigins, k_origins, array, i32, sequences, one, one, one)                                                      \
  ROLE(wholeK, whole_k, array, i32, sequences, one, one, one)

enum class Role : uint8_t {
#define HEDDLE_ROLE_NAME(identifier, ...) identifier,
  HEDDLE_ROLES(HEDDLE_ROLE_NAME)
#undef HEDDLE_ROLE_NAME
};

enum class RoleForm : uint8_t { tensor, array, offsets };
// That of q, k, v or out in the call (CallElements), or the same in every call. sign: fp32 numbers, each 1 or -1.
enum class RoleElement : uint8_t { q, k, v, out, fp32, i32, e4m3, sign };

struct RoleSpec {
  Role role;
  const char *name;
  RoleForm form;
  RoleElement element;
  RoleExtent lead, rows, heads, dim;
};

// In the order of Role.
constexpr RoleSpec kRoles[] = {
#define HEDDLE_ROLE_SPEC(identifier, name, form, element, lead, rows, heads, dim)                                      \
  {Role::identifier,  #name,          RoleForm::form, RoleElement::element, RoleExtent::lead, RoleExtent::rows,        \
   RoleExtent::heads, RoleExtent::dim},
    HEDDLE_ROLES(HEDDLE_ROLE_SPEC)
#undef HEDDLE_ROLE_SPEC
};
constexpr int kRoleCount = int(sizeof(kRoles) / sizeof(kRoles[0]));

constexpr const RoleSpec &specOf(Role role) { return kRoles[int(role)]; }

// both: fp32, whatever the types of the kernel, and the call adds to it.
enum class Access : uint8_t { read = 1, write = 2, both = 3 };
constexpr bool includes(Access access, Access wanted) { return (int(access) & int(wanted)) == int(wanted); }
// together: all roles of the kind that are `together` in one form are given, or none of them. optional: given or not.
// scale: likewise where elements of the tensor that it is of (scaledBy) are scaled, and nowhere else. part: likewise where the
// pattern is one of parts of a whole (attn.whole), and nowhere else.
enum class Presence : uint8_t { required, together, optional, scale, part };

// Where the rows of a tensor of keys lie: behind each other in a batch element, or in pages of any order, of which ragged
// rows are one. An array of those in pages is of sequences, a number for all rows of one. keyMajor: a row is a dimension, of
// all keys, so that the two extents are exchanged.
enum class Rows : uint8_t { dense, inPages, keyMajor };

struct KindRole {
  Role role;
  Access access;
  Presence presence = Presence::required;
  // Of the call. What has a number above 0 is given in calls of one form only: offsets of ragged rows, not beside pages.
  uint8_t form = 0;
  Rows rows = Rows::dense;
};

constexpr RoleSpec specOf(const KindRole &known) {
  RoleSpec spec = specOf(known.role);
  if (known.access == Access::both)
    spec.element = RoleElement::fp32;
  if (known.rows == Rows::inPages && spec.form == RoleForm::tensor)
    spec.lead = RoleExtent::pages, spec.rows = RoleExtent::pageSize;
  else if (known.rows == Rows::inPages)
    spec.lead = RoleExtent::sequences, spec.rows = RoleExtent::one;
  if (known.rows == Rows::keyMajor)
    spec.rows = specOf(known.role).dim, spec.dim = specOf(known.role).rows;
  return spec;
}
// Rows::keyMajor.
constexpr bool isKeyMajor(const RoleSpec &role) { return role.dim == RoleExtent::seqlenK; }

// The tensor whose elements a role that is a scale multiplies.
constexpr Role scaledBy(Role scale) {
  return scale == Role::descaleQ ? Role::q : scale == Role::descaleK ? Role::k : Role::v;
}
// Queries, and keys in pages: those that the tables of sequences name, side by side or behind each other.
#define HEDDLE_KEYS_IN_PAGES                                                                                           \
  {Role::q, Access::read}, {Role::k, Access::read, Presence::required, 0, Rows::inPages},                              \
      {Role::v, Access::read, Presence::required, 0, Rows::inPages},                                                   \
      {Role::pageTable, Access::read, Presence::together, 1}, {Role::sequsedK, Access::read, Presence::optional},      \
      {Role::cuSeqlensQ, Access::read, Presence::optional}, {Role::kvIndptr, Access::read, Presence::together, 3},     \
      {Role::kvIndices, Access::read, Presence::together, 3},                                                          \
      {Role::kvLastPageLen, Access::read, Presence::together, 3}

// Of a call of sequences; of kind decodeInvariant bits of a sequence do not depend on the others.
#define HEDDLE_DECODE                                                                                                  \
  HEDDLE_KEYS_IN_PAGES, {Role::cuSeqlensK, Access::read, Presence::together, 2},                                       \
      {Role::kOrigins, Access::read, Presence::part}, {Role::wholeK, Access::read, Presence::part},                    \
      {Role::out, Access::write}, {Role::lse, Access::write},                                                          \
      {Role::descaleK, Access::read, Presence::scale, 0, Rows::inPages}, {                                             \
    Role::descaleV, Access::read, Presence::scale, 0, Rows::inPages                                                    \
  }

// What becomes of q, k and v in e4m3.
#define HEDDLE_QUANTIZED                                                                                               \
  {Role::q, Access::read}, {Role::k, Access::read}, {Role::v, Access::read}, {Role::quantizedQ, Access::write},        \
      {Role::quantizedK, Access::write}, {Role::quantizedV, Access::write}, {Role::descaleQ, Access::write},           \
      {Role::descaleK, Access::write}, {Role::descaleV, Access::write}, {                                              \
    Role::kMean, Access::write, Presence::optional                                                                     \
  }

// KIND(identifier, name, role...): the kinds, each with its roles in the order in which sizes are taken from them.
#define HEDDLE_KINDS(KIND)                                                                                             \
  KIND(forward, forward, {Role::q, Access::read}, {Role::k, Access::read}, {Role::v, Access::read},                    \
       {Role::out, Access::write}, {Role::lse, Access::write}, {Role::carryOut, Access::read, Presence::together},     \
       {Role::carryLse, Access::read, Presence::together}, {Role::descaleQ, Access::read, Presence::scale},            \
       {Role::descaleK, Access::read, Presence::scale}, {Role::descaleV, Access::read, Presence::scale})               \
  KIND(rowDot, row_dot, {Role::out, Access::read}, {Role::dOut, Access::read}, {Role::delta, Access::write})           \
  KIND(backward, backward, {Role::q, Access::read}, {Role::k, Access::read}, {Role::v, Access::read},                  \
       {Role::out, Access::read}, {Role::lse, Access::read}, {Role::dOut, Access::read},                               \
       {Role::dLse, Access::read, Presence::optional}, {Role::dQ, Access::write}, {Role::dK, Access::write},           \
       {Role::dV, Access::write})                                                                                      \
  KIND(decode, decode, HEDDLE_DECODE)                                                                                  \
  KIND(cascade, cascade, HEDDLE_KEYS_IN_PAGES, {Role::sharedK, Access::read}, {Role::out, Access::write},              \
       {Role::lse, Access::write}, {Role::descaleK, Access::read, Presence::scale, 0, Rows::inPages},                  \
       {Role::descaleV, Access::read, Presence::scale, 0, Rows::inPages})                                              \
  KIND(quantize, quantize, HEDDLE_QUANTIZED)                                                                           \
  KIND(quantizeRotated, quantize_rotated, HEDDLE_QUANTIZED, {Role::rotation, Access::read})                            \
  KIND(decodeInvariant, decode_invariant, HEDDLE_DECODE)

enum class KindBase : uint8_t {
#define HEDDLE_KIND_NAME(identifier, ...) identifier,
  HEDDLE_KINDS(HEDDLE_KIND_NAME)
#undef HEDDLE_KIND_NAME
};

// How the pattern is walked: from queries to their keys, or from keys to their queries as well.
enum class Walk : uint8_t { queries, both };

// Which gradients a call adds to what the caller gives, in fp32, rather than writes: none; d_k and d_v, where a call meets
// all keys of its queries and others share its keys; or d_q as well.
enum class Adds : uint8_t { none, keys, all };

// What a call computes. The choices beside the base are those of gradients, and where values lie.
struct Kind {
  KindBase base = KindBase::forward;
  Adds adds = Adds::none;
  bool isDeterministic = false;          // by kernels whose bits do not depend on the run; of other kinds some may
  std::vector<int64_t> gradientsOf = {}; // arguments of the pattern whose gradients are written too, ascending
  bool hasKeyMajorValues = false;        // v, or what becomes of it in e4m3, lies Rows::keyMajor

  // Every one without gradients of arguments.
  static const std::vector<Kind> &all();
  // "backward_accumulate_deterministic", "backward_accumulate_keys", "forward_v_key_major": the text without gradients of
  // arguments.
  std::string name() const;
  // "backward_of_0_3" also gives the gradients of arguments 0 and 3.
  std::string str() const;
  // The inverse of str. unsupported names the kinds that there are.
  static Result<Kind> parse(std::string_view text);

  // Of its calls; sizes come from the first role in the list that has them.
  const std::vector<KindRole> &roles() const;
  // Its calls add to what is there.
  bool addsTo(Role role) const;
  // Null: calls of this kind have no such role.
  const KindRole *find(Role role) const;
  // Some role of its calls has an extent of this size.
  bool hasSize(RoleExtent size) const;
  // Gradients of k and v: what computes them walks the pattern from its keys, and needs derivatives of its scores.
  bool isBackward() const { return find(Role::dK) != nullptr; }
  // Keys lie in pages, or in ragged rows. Sequences have lengths of their own, and their queries are their last positions.
  bool hasPages() const { return find(Role::pageTable) != nullptr; }
  // Calls of a pattern of parts say of each sequence where its part stands; else where the whole ends is the same for all.
  bool hasPartsOfSequences() const { return find(Role::wholeK) != nullptr; }
  // Calls of the base may have key-major values.
  bool takesKeyMajorValues() const { return base == KindBase::forward || find(Role::quantizedV); }
  // k and v may be scaled where q is not (CallElements::hasScaledKeys).
  bool takesScaledKeys() const;
  // Blocks of rows of q and k may have scales of their own (CallElements::scaleRows).
  bool takesScaleRows() const { return find(Role::descaleQ) != nullptr; }
  Walk walk() const { return isBackward() ? Walk::both : Walk::queries; }
  // Queries meet keys, so what calls compute depends on the pattern.
  bool walksPattern() const { return find(Role::q) && find(Role::out); }
  // Its calls read `role`, or any role, as a forward call on their tensors writes it.
  bool takesFromForward(Role role) const;
  bool takesFromForward() const;
  // Floating-point operations on a kept pair: of forward calls two products, S = Q K^T and O = P V; of backward ones
  // five, S and dP = dO V^T, dV = P^T dO, dK = dS^T Q and dQ = dS K. 0: calls of the kind know no pairs.
  int64_t flopsOfPair(int64_t headDim, int64_t valueDim) const;
};

bool operator==(const Kind &a, const Kind &b);
inline bool operator!=(const Kind &a, const Kind &b) { return !(a == b); }

// Name of every kind without gradients of arguments.
std::vector<std::string> kindNames();

// Position of query 0: 0, seqlen_k - seqlen_q, or what each call says.
enum class QOriginRule : uint8_t { start, end, given };

// "start", "end" or "given"; the inverse gives notFound with the names that exist.
const char *qOriginRuleName(QOriginRule rule);
Result<QOriginRule> parseQOriginRule(std::string_view name);

} // namespace heddle
