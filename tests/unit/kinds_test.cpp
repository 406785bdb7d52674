//===- kinds_test.cpp - the tables of kinds and the struct of the C interface ----------===//
#include "runtime/Core/KernelRecord.h"
#include "runtime/Core/Kinds.h"
#include "runtime/Device/Arguments.h"

#include <cstring>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <type_traits>

using namespace heddle;

namespace {

template <class Field> constexpr RoleForm formOf() {
  return std::is_same_v<Field, heddle_tensor> ? RoleForm::tensor : RoleForm::array;
}

} // namespace

TEST_CASE("every role is a field of the C struct, a tensor or a pointer as the table says") {
#define HEDDLE_CHECK_ROLE(identifier, field, form, ...)                                                                \
  CHECK(formOf<decltype(heddle_attention_args::field)>() == RoleForm::form);                                           \
  CHECK(std::string(specOf(Role::identifier).name) == #field);
  HEDDLE_ROLES(HEDDLE_CHECK_ROLE)
#undef HEDDLE_CHECK_ROLE
}

TEST_CASE("a role's address is that of its own field") {
  CallInputs inputs;
  std::memset(&inputs.args, 0, sizeof inputs.args);
#define HEDDLE_SET_ROLE(identifier, field, ...)                                                                        \
  std::memset(&inputs.args.field, 1 + int(Role::identifier), sizeof(void *)); /* of a tensor, ptr comes first */
  HEDDLE_ROLES(HEDDLE_SET_ROLE)
#undef HEDDLE_SET_ROLE
  for (const RoleSpec &role : kRoles) {
    const uintptr_t expected = 0x0101010101010101ull * uint64_t(1 + int(role.role));
    CHECK(reinterpret_cast<uintptr_t>(inputs.address(role.role)) == expected);
  }
}

TEST_CASE("kinds are found by name, with and without the element type of out") {
  REQUIRE(findKind("forward").isOk());
  CHECK(std::string((*findKind("forward"))->name) == "forward");
  CHECK(*findKind("forward" + std::string(KernelFamily::kFloatOutSuffix)) == *findKind("forward"));
  for (const char *bad : {"", "backwards", "_fp32_out", "forward_fp16_out"})
    CHECK(findKind(bad).status().message().find("there is forward") != std::string::npos);
}

TEST_CASE("kinds name the arguments of a pattern whose gradients they give") {
  const KindText text = KindText::parse("backward_of_0_13_fp32_out");
  CHECK(text.name == "backward");
  CHECK(text.gradientsOf == std::vector<int64_t>{0, 13});
  CHECK(text.outFloat32);
  CHECK(text.str() == "backward_of_0_13_fp32_out");
  CHECK(KindText::parse("row_dot").name == "row_dot");
  CHECK(*findKind("backward_of_2") == *findKind("backward"));
  for (const char *bad : {"forward_of_0", "backward_of_", "backward_of_0_", "backward_of_1_0", "backward_of_0_0",
                          "backward_of_x", "backward_of_-1", "_of_0"})
    CHECK_MESSAGE(!findKind(bad).isOk(), bad);
}

TEST_CASE("no kind has a role twice, and every kind writes something") {
  for (const KindSpec &kind : kinds()) {
    CAPTURE(kind.name);
    std::set<Role> seen;
    bool writes = false;
    for (const KindRole &role : kind.roles) {
      CHECK(seen.insert(role.role).second);
      CHECK(kind.find(role.role) == &role);
      writes = writes || includes(role.access, Access::write);
    }
    CHECK(writes);
  }
}
