//===- Kinds.h - kinds of calls and the roles of their tensors --------------===//
// Owns the tables of DESIGN 11: what a call of each kind reads and writes. Checks of arguments, the symbols and
// pointers of launch plans, tensor files, calls on the processors and the addresses that the driver is asked about come
// from them. A new role is a line of HEDDLE_ROLES, a line in the kinds that have it, and a field of
// heddle_attention_args, which tests/unit/kinds_test.cpp holds against this. A new kind is a line of HEDDLE_KINDS,
// `<kind>OnCpu` (codegen/Cpu), its definition, `<kind>Oracle` (compiler/Oracle), and a skeleton.
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Core/Status.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// ROLE(identifier, name, form, element, row extent, head extent, dim extent): `name` is that of texts and of the field
// of heddle_attention_args. Extents beside the batch are sizes of a call (RoleExtent). Tensors are [batch, rows, heads,
// dim] with strides; arrays are fp32, contiguous: [batch, heads, rows] if dim is one, else [batch, rows, heads, dim].
#define HEDDLE_ROLES(ROLE)                                                                                             \
  ROLE(q, q, tensor, dtype, seqlenQ, heads, headDim)                                                                   \
  ROLE(k, k, tensor, dtype, seqlenK, kvHeads, headDim)                                                                 \
  ROLE(v, v, tensor, dtype, seqlenK, kvHeads, valueDim)                                                                \
  ROLE(out, out, tensor, outDtype, seqlenQ, heads, valueDim)                                                           \
  ROLE(lse, lse, array, fp32, seqlenQ, heads, one)                                                                     \
  ROLE(carryOut, carry_out, array, fp32, seqlenQ, heads, valueDim)                                                     \
  ROLE(carryLse, carry_lse, array, fp32, seqlenQ, heads, one)                                                          \
  ROLE(dOut, d_out, tensor, outDtype, seqlenQ, heads, valueDim)                                                        \
  ROLE(delta, delta, array, fp32, seqlenQ, heads, one)                                                                 \
  ROLE(dLse, d_lse, array, fp32, seqlenQ, heads, one)                                                                  \
  ROLE(dQ, d_q, tensor, dtype, seqlenQ, heads, headDim)                                                                \
  ROLE(dK, d_k, tensor, dtype, seqlenK, kvHeads, headDim)                                                              \
  ROLE(dV, d_v, tensor, dtype, seqlenK, kvHeads, valueDim)

enum class Role : uint8_t {
#define HEDDLE_ROLE_NAME(identifier, ...) identifier,
  HEDDLE_ROLES(HEDDLE_ROLE_NAME)
#undef HEDDLE_ROLE_NAME
};

enum class RoleForm : uint8_t { tensor, array };
// dtype and outDtype are those of the kernel (KernelFamily).
enum class RoleElement : uint8_t { dtype, outDtype, fp32 };
enum class RoleExtent : uint8_t { seqlenQ, seqlenK, heads, kvHeads, headDim, valueDim, one };

struct RoleSpec {
  Role role;
  const char *name;
  RoleForm form;
  RoleElement element;
  RoleExtent rows, heads, dim;
};

// In the order of Role.
constexpr RoleSpec kRoles[] = {
#define HEDDLE_ROLE_SPEC(identifier, name, form, element, rows, heads, dim)                                            \
  {Role::identifier, #name, RoleForm::form, RoleElement::element, RoleExtent::rows, RoleExtent::heads, RoleExtent::dim},
    HEDDLE_ROLES(HEDDLE_ROLE_SPEC)
#undef HEDDLE_ROLE_SPEC
};
constexpr int kRoleCount = int(sizeof(kRoles) / sizeof(kRoles[0]));

constexpr const RoleSpec &specOf(Role role) { return kRoles[int(role)]; }

// both: fp32, whatever the types of the kernel, and the call adds to it.
enum class Access : uint8_t { read = 1, write = 2, both = 3 };
constexpr bool includes(Access access, Access wanted) { return (int(access) & int(wanted)) == int(wanted); }
// together: all roles of the kind that are `together` are given, or none of them. optional: given or not.
enum class Presence : uint8_t { required, together, optional };

struct KindRole {
  Role role;
  Access access;
  Presence presence = Presence::required;
};

constexpr RoleSpec specOf(const KindRole &known) {
  RoleSpec spec = specOf(known.role);
  if (known.access == Access::both)
    spec.element = RoleElement::fp32;
  return spec;
}

// Sizes of a call come from the first role in the list that has them.
struct KindSpec {
  const char *name;
  std::vector<KindRole> roles;

  // Null: calls of this kind have no such role.
  const KindRole *find(Role role) const;
  // Gradients of k and v: what computes them walks the pattern from its keys, and needs derivatives of its scores.
  bool isBackward() const { return find(Role::dK) != nullptr; }
  // They are added to what the caller gives.
  bool accumulates() const { return isBackward() && find(Role::dK)->access == Access::both; }
  // Kernels whose bits do not depend on the run; of kinds without such a name some may.
  bool isDeterministic() const;
  // Floating-point operations on a kept pair: of forward calls two products, S = Q K^T and O = P V; of backward ones
  // five, S and dP = dO V^T, dV = P^T dO, dK = dS^T Q and dQ = dS K. 0: calls of the kind know no pairs.
  int64_t flopsOfPair(int64_t headDim, int64_t valueDim) const;
};

// `access`: of the gradients.
#define HEDDLE_GRADIENT_ROLES(access)                                                                                  \
  {Role::q, Access::read}, {Role::k, Access::read}, {Role::v, Access::read}, {Role::out, Access::read},                \
      {Role::lse, Access::read}, {Role::dOut, Access::read}, {Role::dLse, Access::read, Presence::optional},           \
      {Role::dQ, Access::access}, {Role::dK, Access::access}, {                                                        \
    Role::dV, Access::access                                                                                           \
  }

// KIND(identifier, name, role...): the kinds, each with its roles in the order in which sizes are taken from them.
#define HEDDLE_KINDS(KIND)                                                                                             \
  KIND(forward, forward, {Role::q, Access::read}, {Role::k, Access::read}, {Role::v, Access::read},                    \
       {Role::out, Access::write}, {Role::lse, Access::write}, {Role::carryOut, Access::read, Presence::together},     \
       {Role::carryLse, Access::read, Presence::together})                                                             \
  KIND(rowDot, row_dot, {Role::out, Access::read}, {Role::dOut, Access::read}, {Role::delta, Access::write})           \
  KIND(backward, backward, HEDDLE_GRADIENT_ROLES(write))                                                               \
  KIND(backwardAccumulate, backward_accumulate, HEDDLE_GRADIENT_ROLES(both))                                           \
  KIND(backwardDeterministic, backward_deterministic, HEDDLE_GRADIENT_ROLES(write))                                    \
  KIND(backwardAccumulateDeterministic, backward_accumulate_deterministic, HEDDLE_GRADIENT_ROLES(both))

// What the text of a kind says of a kernel (KernelFamily::kind): "backward_of_0_3_fp32_out" also gives the gradients of
// arguments 0 and 3 of the pattern, and takes out in fp32.
struct KindText {
  std::string name;                      // KindSpec::name
  std::vector<int64_t> gradientsOf = {}; // ascending
  bool outFloat32 = false;

  std::string str() const;
  // What is no such suffix stays in the name.
  static KindText parse(std::string_view text);
};

// What a kernel of a kind, suffixes included, is called with. unsupported names the kinds that there are.
Result<const KindSpec *> findKind(std::string_view kind);
const std::vector<KindSpec> &kinds();
std::vector<std::string> kindNames();

// Position of query 0: 0, seqlen_k - seqlen_q, or what each call says.
enum class QOriginRule : uint8_t { start, end, given };

// "start", "end" or "given"; the inverse gives notFound with the names that exist.
const char *qOriginRuleName(QOriginRule rule);
Result<QOriginRule> parseQOriginRule(std::string_view name);

} // namespace heddle
