#include "runtime/Core/CallChecks.h"
#include "runtime/Core/Positions.h"
#include "runtime/Core/SequenceChecks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace heddle {
namespace {

std::string num(int64_t value) { return std::to_string(value); }

std::string nameOfElement(int32_t code) {
  const std::optional<DType> dtype = dtypeOfCode(code);
  return dtype ? dtypeName(*dtype) : "number " + num(code);
}

} // namespace

Status checkHeads(const Kind &kind, const LaunchSymbols &symbols) {
  const int64_t heads = symbols[LaunchSymbol::heads], kvHeads = symbols[LaunchSymbol::kvHeads];
  // Gradients of keys that no head reads would be written by nobody.
  const bool isOfNone = heads == 0 && (kvHeads == 0 || !kind.isBackward());
  if (!kind.find(Role::k) || isOfNone || (heads > 0 && kvHeads > 0 && heads % kvHeads == 0))
    return {};
  return badArguments("k: size of head: expected a divisor of the " + num(heads) + " query heads, got " + num(kvHeads));
}

Status checkScale(float scale) {
  if (std::isfinite(scale) && scale >= 0)
    return {};
  return badArguments("scale: expected a finite number above 0 (or 0 for 1 / sqrt(head_dim)), got " +
                      std::to_string(scale));
}

Status checkNumbers(const KindRole &known, const void *numbers, int64_t count) {
  const RoleSpec role = specOf(known);
  const bool isSign = role.element == RoleElement::sign;
  if (!isSign && known.presence != Presence::scale)
    return {};
  for (int64_t i = 0; i < count; ++i)
    if (const float number = static_cast<const float *>(numbers)[i];
        isSign ? std::abs(number) != 1 : !std::isfinite(number) || number <= 0)
      return badArguments(std::string(role.name) + ": element " + num(i) + ": expected " +
                          (isSign ? "1 or -1" : "a finite number above 0") + ", got " + std::to_string(number));
  return {};
}

Status checkOrigins(const OriginRules &rules, const heddle_attention_args &args, const LaunchSymbols &symbols) {
  const int64_t rows = symbols[LaunchSymbol::seqlenQ], keys = symbols[LaunchSymbol::seqlenK];
  const Status status = checkPositions({args.q_origin, rows, args.k_origin, keys});
  if (!status.isOk())
    return badArguments(status.message());
  const bool isEnd = rules.qOrigin == QOriginRule::end && args.q_origin == keys - rows;
  if (rules.qOrigin != QOriginRule::given && args.q_origin != 0 && !isEnd)
    return badArguments("q_origin: expected 0, got " + num(args.q_origin) +
                        "; this pattern says itself where query 0 stands (" + qOriginRuleName(rules.qOrigin) +
                        "), one with q_origin given takes any");
  if (!rules.keyOriginStep)
    return checkAllKeys(args.k_origin);
  if (args.k_origin % rules.keyOriginStep != 0)
    return badArguments("k_origin: expected a multiple of " + num(rules.keyOriginStep) + ", got " + num(args.k_origin) +
                        "; this kernel keeps or drops whole blocks of keys. A pattern with q_origin given takes any");
  return {};
}

//===-- tensors and arrays ---------------------------------------------------===//

std::vector<RoleExtent> extentsOf(const RoleSpec &role) {
  const bool hasDim = role.dim != RoleExtent::one;
  std::vector<RoleExtent> extents = {role.lead, role.rows, role.heads, role.dim};
  if (!hasDim)
    std::swap(extents[1], extents[2]);
  extents.erase(std::remove(extents.begin(), extents.end(), RoleExtent::one), extents.end());
  return extents;
}

int64_t elementsOf(const RoleSpec &role, const LaunchSymbols &symbols) {
  int64_t elements = 1;
  for (RoleExtent extent : {role.lead, role.rows, role.heads, role.dim})
    if (extent != RoleExtent::one)
      elements *= symbols[symbolOf(extent)];
  return elements + (role.form == RoleForm::offsets);
}

void CallSizes::set(LaunchSymbol symbol, int64_t value) {
  symbols[symbol] = value;
  isKnown[int(symbol)] = true;
}

// "batch", "row", "head", "dim": what the dimensions of its tensors are called.
static std::array<const char *, 4> namesOfDims(const RoleSpec &role) {
  std::array<const char *, 4> names = {role.lead == RoleExtent::pages ? "page" : "batch", "row", "head", "dim"};
  if (isKeyMajor(role))
    std::swap(names[1], names[3]);
  return names;
}

Status CallSizes::check(const RoleSpec &role, const int64_t (&size)[4]) {
  const LaunchSymbol extents[] = {symbolOf(role.lead), symbolOf(role.rows), symbolOf(role.heads), symbolOf(role.dim)};
  for (int i = 0; i < 4; ++i) {
    auto fail = [&](const std::string &expected) {
      return badArguments(std::string(role.name) + ": size of " + namesOfDims(role)[size_t(i)] + ": expected " +
                          expected + ", got " + num(size[i]));
    };
    if (size[i] < 0 || size[i] > INT32_MAX)
      return fail("0 to 2^31 - 1");
    if (!isKnown[int(extents[i])])
      set(extents[i], size[i]);
    if (size[i] != symbols[extents[i]])
      return fail(num(symbols[extents[i]]));
  }
  return {};
}

Status checkDtype(const RoleSpec &role, int32_t dtype, const CallRules &rules) {
  const DType expected = rules.elements.of(role.element);
  if (dtype == traitsOf(expected).code)
    return {};
  const RoleSpec &first = specOf(rules.roles->front().role);
  std::string as;
  if (role.element == RoleElement::fp32 && role.form == RoleForm::tensor)
    as = ", which the gradient is added to";
  else if (role.role != first.role && expected == rules.elements.of(first.element))
    as = std::string(" as ") + first.name;
  return badArguments(std::string(role.name) + ": dtype: expected " + dtypeName(expected) + as + ", got " +
                      nameOfElement(dtype));
}

namespace {

Status checkAddress(const char *name, const void *given, const char *memory, int64_t alignment) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(given), rest = address % uintptr_t(alignment);
  if (address != 0 && rest == 0)
    return {};
  return badArguments(std::string(name) + ": address: expected " + memory +
                      (alignment > 1 ? " at a multiple of " + num(alignment) + " bytes" : std::string()) + ", got " +
                      (address == 0 ? std::string("null") : "remainder " + num(int64_t(rest))));
}

constexpr int64_t kSpanLimit = int64_t(1) << 40; // bytes

// Steps along dimension `dim` of a tensor that has elements; spanBytes grows by what they span.
Status checkStride(const KindRole &known, const heddle_tensor &tensor, int dim, const CallRules &rules,
                   int64_t &spanBytes) {
  const RoleSpec role = specOf(known);
  const int64_t stride = tensor.stride[dim], elementBytes = dtypeBytes(rules.elements.of(role.element));
  auto fail = [&](const std::string &what) {
    return badArguments(std::string(role.name) + ": stride of " + namesOfDims(role)[size_t(dim)] + ": " + what);
  };
  if (rules.isOnDevice() && (stride < 0 || stride > kSpanLimit))
    return fail("expected 0 to 2^40, got " + num(stride));
  if (rules.isOnDevice() && stride * elementBytes % rules.alignment != 0)
    return fail("expected a multiple of " + num(rules.alignment) + " bytes, got " + num(stride * elementBytes) +
                " bytes (" + num(stride) + " elements)");
  if (stride == 0 && includes(known.access, Access::write))
    return fail("expected rows that do not overlap, got 0");
  const bool isFar = stride < -kSpanLimit || stride > kSpanLimit;
  int64_t extent = 0;
  if (isFar || __builtin_mul_overflow((tensor.size[dim] - 1) * elementBytes, std::abs(stride), &extent) ||
      extent >= kSpanLimit - spanBytes)
    return fail("the tensor spans 2^40 bytes or more (" + num(tensor.size[dim]) + " times " + num(stride) +
                " elements)");
  spanBytes += extent;
  return {};
}

Status checkStrides(const KindRole &known, const heddle_tensor &tensor, const CallRules &rules) {
  const RoleSpec role = specOf(known);
  if (tensor.size[3] > 1 && tensor.stride[3] != 1)
    return badArguments(std::string(role.name) + ": stride of " + namesOfDims(role)[3] + ": expected 1, got " +
                        num(tensor.stride[3]) + "; make the tensor contiguous in " + namesOfDims(role)[3]);
  int64_t spanBytes = tensor.size[3] * dtypeBytes(rules.elements.of(role.element));
  for (int dim = 0; dim < 3; ++dim)
    if (tensor.size[dim] != 1)
      HEDDLE_TRY(checkStride(known, tensor, dim, rules, spanBytes));
  return {};
}

// Nobody steps along a dimension of size 1 or in an empty tensor, so any stride is accepted there; kernels and tensor
// maps see one that is valid.
void setStrides(LaunchSymbols &symbols, Role role, const heddle_tensor &tensor) {
  constexpr int64_t kUnusedStride = 16; // elements; 16 bytes of the smallest type
  for (int i = 0; i < kStrideDims; ++i)
    symbols[strideOf(role, StrideDim(i))] = tensor.size[i] == 1 || isEmpty(tensor) ? kUnusedStride : tensor.stride[i];
}

Status checkTensor(const KindRole &known, const heddle_tensor &tensor, const CallRules &rules, CallSizes &sizes) {
  const RoleSpec role = specOf(known);
  if (tensor.reserved != 0)
    return Status::unsupported("attention arguments: the reserved field of a tensor is not zero");
  HEDDLE_TRY(checkDtype(role, tensor.dtype, rules));
  HEDDLE_TRY(sizes.check(role, tensor.size));
  if (isEmpty(tensor))
    return {};
  HEDDLE_TRY(checkStrides(known, tensor, rules));
  return checkAddress(role.name, tensor.ptr, rules.memory, rules.alignment);
}

Status checkArray(const KindRole &known, const void *address, const CallRules &rules, const LaunchSymbols &symbols) {
  const RoleSpec role = specOf(known);
  if (known.presence == Presence::scale && address) {
    const RoleSpec &of = specOf(scaledBy(known.role));
    if (const DType dtype = rules.elements.of(of.element); !traitsOf(dtype).isScaled())
      return badArguments(std::string(role.name) + ": expected null beside " + of.name + " of " + dtypeName(dtype) +
                          ", which has no scales");
  }
  const bool isRequired = known.presence == Presence::required && elementsOf(role, symbols) != 0 &&
                          (rules.needsAllResults || includes(known.access, Access::read));
  if (!address && !isRequired)
    return {};
  // Rows of more than one element are read 16 bytes at a time.
  constexpr int64_t kElement = 4;
  return checkAddress(role.name, address, rules.memory,
                      role.dim == RoleExtent::one ? std::min(kElement, rules.alignment) : rules.alignment);
}

using Roles = std::vector<KindRole>;

// "carry_out and carry_lse"
std::string namesOfTogether(const Roles &roles, uint8_t form) {
  std::string names;
  for (const KindRole &known : roles)
    if (known.presence == Presence::together && known.form == form)
      names += (names.empty() ? "" : " and ") + std::string(specOf(known.role).name);
  return names;
}

// `given`: a role of the form that the call has. All that are together with it are given.
Status checkTogether(const Roles &roles, const KindRole &given, const heddle_attention_args &args) {
  for (const KindRole &known : roles)
    if (known.presence == Presence::together && known.form == given.form && !addressOf(args, known.role))
      return badArguments(std::string(specOf(known.role).name) + ": expected both " +
                          namesOfTogether(roles, known.form) + " or neither, got null");
  return {};
}

Status checkForms(const Roles &roles, const heddle_attention_args &args) {
  const KindRole *ofForm = nullptr;
  for (const KindRole &known : roles) {
    if (!addressOf(args, known.role))
      continue;
    if (known.form && ofForm && known.form != ofForm->form)
      return badArguments(std::string(specOf(known.role).name) + ": expected null beside " + specOf(ofForm->role).name +
                          ", which calls of another form have");
    ofForm = known.form ? &known : ofForm;
    if (known.presence == Presence::together)
      HEDDLE_TRY(checkTogether(roles, known, args));
  }
  return {};
}

} // namespace

Status checkRoles(const CallRules &rules, const heddle_attention_args &args, CallSizes &sizes, LaunchSymbols &symbols) {
  for (const KindRole &known : *rules.roles)
    if (specOf(known.role).form == RoleForm::tensor) {
      HEDDLE_TRY(checkTensor(known, tensorOf(args, known.role), rules, sizes));
      setStrides(symbols, known.role, tensorOf(args, known.role));
    }
  HEDDLE_TRY(checkHeads(*rules.kind, symbols));
  HEDDLE_TRY(checkForms(*rules.roles, args));
  HEDDLE_TRY(checkSequences(*rules.roles, args, symbols));
  symbols[LaunchSymbol::qBlocks] = rules.elements.scaleBlocks(symbols[LaunchSymbol::seqlenQ]);
  symbols[LaunchSymbol::kBlocks] = rules.elements.scaleBlocks(symbols[LaunchSymbol::seqlenK]);
  for (const KindRole &known : *rules.roles)
    if (specOf(known.role).form != RoleForm::tensor)
      HEDDLE_TRY(checkArray(known, addressOf(args, known.role), rules, symbols));
  return {};
}

} // namespace heddle
