#include "runtime/Core/CallArguments.h"
#include "runtime/Core/VersionedStruct.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace heddle {
namespace {

struct Field {
  size_t offset;
  RoleForm form;
};

// In the order of Role.
constexpr Field kFields[] = {
#define HEDDLE_ROLE_FIELD(identifier, name, form, ...) {offsetof(heddle_attention_args, name), RoleForm::form},
    HEDDLE_ROLES(HEDDLE_ROLE_FIELD)
#undef HEDDLE_ROLE_FIELD
};

struct SizeField {
  RoleExtent size;
  int32_t heddle_attention_args::*field;
};

constexpr SizeField kSizeFields[] = {
#define HEDDLE_NO_FIELD(...)
#define HEDDLE_SIZE_FIELD(identifier, name, ...) {RoleExtent::identifier, &heddle_attention_args::name},
    HEDDLE_SIZES(HEDDLE_NO_FIELD, HEDDLE_SIZE_FIELD)
#undef HEDDLE_NO_FIELD
#undef HEDDLE_SIZE_FIELD
};

// Callers of every version have the tensors and lse.
constexpr size_t kLeastStructBytes = offsetof(heddle_attention_args, q_origin);

const unsigned char *fieldOf(const heddle_attention_args &args, Role role) {
  return reinterpret_cast<const unsigned char *>(&args) + kFields[int(role)].offset;
}

bool isUnset(const heddle_tensor &tensor) {
  const heddle_tensor unset = {};
  return std::memcmp(&tensor, &unset, sizeof unset) == 0;
}

Status servedByNone(const char *name) {
  return Status::unsupported(std::string("attention arguments: no kernel serves ") + name + " yet; leave it zero");
}

Status checkUnserved(const heddle_attention_args &args) {
  struct Named {
    const char *name;
    bool isSet;
  };
  auto isAnySet = [](const int64_t (&strides)[2]) { return strides[0] != 0 || strides[1] != 0; };
  const Named fields[] = {{"flags", (args.flags & ~uint32_t(HEDDLE_WITHOUT_GRAPH)) != 0},
                          {"descale_q", isAnySet(args.descale_q_stride)},
                          {"descale_k", isAnySet(args.descale_k_stride)},
                          {"descale_v", isAnySet(args.descale_v_stride)},
                          {"rng_seed", args.rng_seed != 0},
                          {"rng_offset", args.rng_offset != 0},
                          {"reserved", args.reserved != 0}};
  for (const Named &field : fields)
    if (field.isSet)
      return servedByNone(field.name);
  return {};
}

} // namespace

bool isEmpty(const heddle_tensor &tensor) {
  return std::any_of(std::begin(tensor.size), std::end(tensor.size), [](int64_t size) { return size == 0; });
}

const heddle_tensor &tensorOf(const heddle_attention_args &args, Role role) {
  return *reinterpret_cast<const heddle_tensor *>(fieldOf(args, role));
}

const void *addressOf(const heddle_attention_args &args, Role role) {
  if (kFields[int(role)].form == RoleForm::tensor)
    return tensorOf(args, role).ptr;
  const void *address;
  std::memcpy(&address, fieldOf(args, role), sizeof address);
  return address;
}

Status readArguments(const heddle_attention_args &args, heddle_attention_args &known) {
  HEDDLE_TRY(readVersioned("attention arguments", args, kLeastStructBytes, known));
  return checkUnserved(known);
}

static Status absentOf(const Kind &kind, const char *name) {
  return Status::unsupported("attention arguments: a call of kind " + kind.name() + " has no " + name +
                             "; leave it zero");
}

Status checkForeign(const Kind &kind, const heddle_attention_args &args) {
  for (const RoleSpec &role : kRoles) {
    const bool isGiven =
        role.form == RoleForm::tensor ? !isUnset(tensorOf(args, role.role)) : addressOf(args, role.role) != nullptr;
    if (isGiven && !kind.find(role.role))
      return absentOf(kind, role.name);
  }
  for (const auto &[size, field] : kSizeFields)
    if (args.*field != 0 && !kind.hasSize(size))
      return absentOf(kind, kSizes[int(size)].name);
  return {};
}

void giveSizes(const Kind &kind, const std::function<int64_t(RoleExtent)> &sizeIn, heddle_attention_args &args) {
  for (const auto &[size, field] : kSizeFields)
    if (kind.hasSize(size))
      args.*field = int32_t(sizeIn(size));
}

Status badArguments(const std::string &what) { return Status::invalidArgument("attention arguments: " + what); }

} // namespace heddle
