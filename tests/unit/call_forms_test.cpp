//===- call_forms_test.cpp - roles that calls of one form have -----------------===//
// Arrays of integers, offsets, scales, and roles of forms that exclude each other, in a table of this test: the checks go
// by the table of the kind, whatever is in it.
#include "runtime/Core/CallMemory.h"
#include "runtime/Device/Arguments.h"
#include "runtime/Device/Device.h"
#include "runtime/Device/Kernel.h"

#include <doctest/doctest.h>

using namespace heddle;

namespace {

void *at(uintptr_t address) { return reinterpret_cast<void *>(address); }

/// Forward calls whose rows are dense, ragged (form 1) or used in part (form 2), with scales of keys.
std::vector<KindRole> rolesWithForms() {
  std::vector<KindRole> roles;
  for (const KindRole &known : Kind().roles())
    if (known.presence != Presence::scale)
      roles.push_back(known);
  roles.push_back({Role::cuSeqlensQ, Access::read, Presence::together, 1});
  roles.push_back({Role::cuSeqlensK, Access::read, Presence::together, 1});
  roles.push_back({Role::sequsedK, Access::read, Presence::optional, 2});
  roles.push_back({Role::descaleK, Access::read, Presence::required});
  return roles;
}

struct Call {
  Call() {
    args.q = args.out = contiguousTensor(at(0x1000000), DType::bf16, {3, 10, 4, 64});
    args.out.ptr = at(0x2000000);
    args.k = args.v = contiguousTensor(at(0x3000000), DType::bf16, {3, 20, 2, 64});
    args.lse = static_cast<float *>(at(0x4000000));
    args.descale_k = static_cast<float *>(at(0x5000000));
  }

  Status check() {
    const Kind kind;
    CallRules rules(kind);
    rules.roles = &roles;
    CallSizes sizes(symbols);
    HEDDLE_TRY(checkRoles(rules, args, sizes, symbols));
    return checkApart(rules, args, symbols, MorePlaces());
  }
  void giveOffsets(uintptr_t ofQueries, uintptr_t ofKeys) {
    args.cu_seqlens_q = static_cast<int32_t *>(at(ofQueries));
    args.cu_seqlens_k = static_cast<int32_t *>(at(ofKeys));
  }

  const std::vector<KindRole> roles = rolesWithForms();
  AttentionArgs args = makeAttentionArgs();
  LaunchSymbols symbols;
};

} // namespace

TEST_CASE("arrays have as many elements as their extents say, offsets one more") {
  Call call;
  REQUIRE_MESSAGE(call.check().isOk(), call.check().message());
  CHECK(elementsOf(specOf(Role::cuSeqlensQ), call.symbols) == 4);
  CHECK(elementsOf(specOf(Role::sequsedK), call.symbols) == 3);
  CHECK(elementsOf(specOf(Role::descaleQ), call.symbols) == 12);
  CHECK(elementsOf(specOf(Role::descaleK), call.symbols) == 6);
  CHECK(CallElements().of(RoleElement::i32) == DType::i32);
  CHECK(CallElements(DType::fp16, DType::fp32).of(RoleElement::out) == DType::fp32);
}

TEST_CASE("roles of one form are given all or none, and those of two forms not in one call") {
  Call call;
  call.giveOffsets(0x6000000, 0x7000000);
  CHECK(call.check().message() == "");
  call.giveOffsets(0x6000000, 0);
  CHECK(call.check().message() ==
        "attention arguments: cu_seqlens_k: expected both cu_seqlens_q and cu_seqlens_k or neither, got null");
  call.args.carry_lse = static_cast<float *>(at(0x9000000)); // of another pair
  call.giveOffsets(0x6000000, 0x7000000);
  CHECK(call.check().message() ==
        "attention arguments: carry_out: expected both carry_out and carry_lse or neither, got null");
  call.args.carry_lse = nullptr;
  call.args.seqused_k = static_cast<int32_t *>(at(0x8000000));
  CHECK(call.check().message() == "attention arguments: seqused_k: expected null beside cu_seqlens_k, which calls of "
                                  "another form have");
  call.giveOffsets(0, 0);
  CHECK(call.check().message() == "");
}

TEST_CASE("integers and scales are checked as other arrays are: address, presence, memory of their own") {
  Call call;
  call.args.descale_k = nullptr;
  CHECK(call.check().message() ==
        "attention arguments: descale_k: address: expected device memory at a multiple of 4 bytes, got null");
  call.args.descale_k = static_cast<float *>(at(0x5000000));
  call.giveOffsets(0x6000002, 0x7000000);
  CHECK(call.check().message() == "attention arguments: cu_seqlens_q: address: expected device memory at a multiple of "
                                  "4 bytes, got remainder 2");
  call.giveOffsets(0x2000000 - 4 * sizeof(int32_t), 0x7000000);
  CHECK(call.check().message() == "");
  call.giveOffsets(0x2000000 - 3 * sizeof(int32_t), 0x7000000); // the end of the last one lies in out
  CHECK(call.check().message().find("out: expected memory apart from cu_seqlens_q") != std::string::npos);
}

TEST_CASE("what the kind does not have is refused, roles and sizes alike") {
  heddle_attention_args args = makeAttentionArgs();
  args.cu_seqlens_k = static_cast<int32_t *>(at(0x6000000));
  CHECK(checkForeign(Kind(), args).message() ==
        "attention arguments: a call of kind forward has no cu_seqlens_k; leave it zero");
  CHECK(checkForeign({KindBase::decode}, args).isOk());
  args.cu_seqlens_k = nullptr, args.tables = 2;
  CHECK(checkForeign(Kind(), args).message() ==
        "attention arguments: a call of kind forward has no tables; leave it zero");
  CHECK(checkForeign({KindBase::decode}, args).isOk());
}
