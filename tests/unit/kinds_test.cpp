//===- kinds_test.cpp - the tables of kinds and the struct of the C interface ----------===//
#include "runtime/Core/CallArguments.h"
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

template <class Field> constexpr bool isTensor() { return std::is_same_v<Field, heddle_tensor>; }

} // namespace

TEST_CASE("every role is a field of the C struct, a tensor or a pointer as the table says") {
#define HEDDLE_CHECK_ROLE(identifier, field, form, ...)                                                                \
  CHECK(isTensor<decltype(heddle_attention_args::field)>() == (RoleForm::form == RoleForm::tensor));                   \
  CHECK(std::string(specOf(Role::identifier).name) == #field);
  HEDDLE_ROLES(HEDDLE_CHECK_ROLE)
#undef HEDDLE_CHECK_ROLE
}

TEST_CASE("sizes are one list: symbols of launches, fields of the C struct and what nobody says come from it") {
  for (const SizeSpec &size : kSizes) {
    CHECK(&size == &kSizes[int(size.size)]);
    CHECK(launchSymbolName(symbolOf(size.size)) == size.name);
    CHECK(LaunchExpr::parse(size.name)->str() == size.name);
  }
#define HEDDLE_NO_FIELD(...)
#define HEDDLE_CHECK_FIELD(identifier, name, ...)                                                                      \
  CHECK((std::is_same_v<decltype(heddle_attention_args::name), int32_t>));                                             \
  CHECK(kSizes[int(RoleExtent::identifier)].isField);
  HEDDLE_SIZES(HEDDLE_NO_FIELD, HEDDLE_CHECK_FIELD)
#undef HEDDLE_NO_FIELD
#undef HEDDLE_CHECK_FIELD
  heddle_attention_args args = {};
  giveSizes({KindBase::decode}, [](RoleExtent size) { return 100 + int64_t(size); }, args);
  CHECK(args.page_size == 100 + int(RoleExtent::pageSize));
  CHECK(args.tables == 100 + int(RoleExtent::tables));
  args = {};
  giveSizes(Kind(), [](RoleExtent) { return 1; }, args);
  CHECK(args.sequences == 0);
  CHECK(Kind{KindBase::decode}.hasSize(RoleExtent::maxPages));
  CHECK_FALSE(Kind().hasSize(RoleExtent::sequences));
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

TEST_CASE("kinds have one text") {
  CHECK(kindNames() == std::vector<std::string>{"forward", "forward_v_key_major", "row_dot", "backward",
                                                "backward_accumulate", "backward_accumulate_keys",
                                                "backward_deterministic", "backward_accumulate_deterministic",
                                                "backward_accumulate_keys_deterministic", "decode", "cascade",
                                                "quantize", "quantize_v_key_major", "quantize_rotated",
                                                "quantize_rotated_v_key_major", "decode_invariant"});
  for (Kind kind : Kind::all()) {
    if (kind.isBackward())
      kind.gradientsOf = {0, 13};
    const Result<Kind> parsed = Kind::parse(kind.str());
    REQUIRE(parsed.isOk());
    CHECK(*parsed == kind);
  }
  CHECK(Kind{KindBase::backward, Adds::all, true, {0, 13}}.str() == "backward_accumulate_deterministic_of_0_13");
  CHECK(Kind{KindBase::backward, Adds::all, true, {0, 13}}.name() == "backward_accumulate_deterministic");
  for (const char *bad :
       {"", "backwards", "_fp32_out", "forward_fp16_out", "forward_fp32_out", "forward_of_0", "backward_of_",
        "backward_of_0_", "backward_of_1_0", "backward_of_0_0", "backward_of_x", "backward_of_-1", "_of_0",
        "backward_deterministic_accumulate", "row_dot_accumulate", "forward_deterministic", "backward_v_key_major",
        "decode_v_key_major", "forward_v_key_major_v_key_major"})
    CHECK_MESSAGE(Kind::parse(bad).status().message().find("there is forward") != std::string::npos, bad);
}

TEST_CASE("the text of a kernel's kind says of what type out is, where it is not as usual") {
  const Result<KindText> text = KindText::parse("backward_of_0_13_fp32_out");
  REQUIRE(text.isOk());
  CHECK(text->kind == Kind{KindBase::backward, Adds::none, false, {0, 13}});
  CHECK(text->out == DType::fp32);
  CHECK(text->str() == "backward_of_0_13_fp32_out");
  CHECK_FALSE(KindText::parse("row_dot")->out);
  CHECK(KindText::of(Kind(), CallElements(DType::e4m3, DType::fp16)).str() == "forward_fp16_out");
  CHECK(KindText::of(Kind(), CallElements(DType::e4m3, DType::bf16)).str() == "forward");
  CHECK(KindText::parse("forward_fp16_out")->elements(DType::e4m3).out == DType::fp16);
  CHECK(KindText::parse("forward")->elements(DType::e4m3).out == DType::bf16);
  for (const char *bad : {"_fp32_out", "forward_fp32_out_of_0", "forward_fp32_out_fp32_out", "_tf32",
                          "forward_tf32_fp32_out", "forward_tf32_tf32", "forward_exact", "forward_i32_out",
                          "forward_fp32_out_e4m3_kv", "forward_e4m3_kv_e4m3_kv", "_e4m3_kv", "forward_i32_kv"})
    CHECK_MESSAGE(!KindText::parse(bad).isOk(), bad);
}

TEST_CASE("the text of a kernel's kind says of what type k and v are, where it is not that of q") {
  const Kind decode = {KindBase::decode};
  const CallElements cached = CallElements(DType::bf16).withKeys(DType::e4m3);
  CHECK(KindText::of(decode, cached).str() == "decode_e4m3_kv");
  CHECK(KindText::of(decode, CallElements(DType::e4m3)).str() == "decode");
  const Result<KindText> text = KindText::parse("decode_e4m3_kv_fp32_out");
  REQUIRE(text.isOk());
  CHECK(text->kind == decode);
  CHECK(text->str() == "decode_e4m3_kv_fp32_out");
  const CallElements elements = text->elements(DType::fp16);
  CHECK(elements.q == DType::fp16);
  CHECK(elements.k == DType::e4m3);
  CHECK(elements.v == DType::e4m3);
  CHECK(elements.out == DType::fp32);
  CHECK(elements.hasScaledKeys());
  CHECK(KindText::parse("decode_e4m3_kv")->elements(DType::e4m3).areAlike());
}

TEST_CASE("elements of a call go together where k and v are scaled beside q, and out is of its type or fp32") {
  const CallElements cached = CallElements(DType::bf16).withKeys(DType::e4m3);
  CHECK(checkElements(cached, true).isOk());
  CHECK(checkElements(cached, false).message() ==
        "serves q, k and v of one type, not bf16, e4m3 and e4m3; forward calls and those of kind decode have these");
  for (const CallElements &bad :
       {CallElements(DType::fp32).withKeys(DType::e4m3), CallElements(DType::e4m3).withKeys(DType::bf16),
        CallElements(DType::bf16).withKeys(DType::fp16)})
    CHECK(checkElements(bad, true).message().find("or k and v of e4m3 beside q of bf16 or fp16") != std::string::npos);
  for (DType out : {DType::bf16, DType::fp16, DType::fp32})
    CHECK(checkElements(CallElements(DType::e4m3, out), false).isOk());
  CHECK(checkElements(CallElements(DType::e4m3, DType::e4m3), false).message() ==
        "serves out of bf16, fp16 or fp32, not e4m3");
  CHECK(checkElements(CallElements(DType::bf16, DType::fp16), false).message() ==
        "serves out of the type of q or fp32, not fp16");
  CHECK(Kind{KindBase::decode}.takesScaledKeys());
  CHECK(Kind().takesScaledKeys());
  CHECK_FALSE(Kind{KindBase::backward}.takesScaledKeys());
  CHECK_FALSE(Kind{KindBase::quantize}.takesScaledKeys());
}

TEST_CASE("the text of a kernel's kind says how many rows of q and k share a scale, if these are not all of a head") {
  const Kind quantize = {KindBase::quantize};
  for (int64_t rows : kScaleRows) {
    const std::string suffix = "_scale_rows_" + std::to_string(rows);
    const CallElements blocks = CallElements(DType::e4m3, DType::fp16).withScaleRows(rows);
    CHECK(KindText::of(Kind(), blocks).str() == "forward_fp16_out" + suffix);
    const Result<KindText> text = KindText::parse("quantize" + suffix);
    REQUIRE(text.isOk());
    CHECK(text->kind == quantize);
    CHECK(text->str() == "quantize" + suffix);
    CHECK(text->elements(DType::bf16).scaleRows == rows);
    CHECK(KernelFamily::of("digest", {Kind(), blocks, 64, 64}, "heddle").shape()->elements.scaleRows == rows);
    CHECK(checkScaleRows(Kind(), blocks).isOk());
    CHECK(checkScaleRows(quantize, CallElements(DType::bf16).withScaleRows(rows)).isOk());
  }
  CHECK(KindText::parse("forward")->elements(DType::e4m3).scaleRows == 0);
  for (const char *bad : {"_scale_rows_64", "forward_scale_rows_32", "forward_scale_rows_64_fp16_out",
                          "forward_scale_rows_64_scale_rows_64", "forward_scale_rows_"})
    CHECK_MESSAGE(!KindText::parse(bad).isOk(), bad);
  CHECK(CallElements().withScaleRows(64).scaleBlocks(129) == 3);
  CHECK(CallElements().withScaleRows(64).scaleBlocks(0) == 0);
  CHECK(CallElements().scaleBlocks(129) == 1);
}

TEST_CASE("elements that are scaled have no gradients") {
  const Kind backward = {KindBase::backward};
  for (DType dtype : {DType::bf16, DType::fp16, DType::fp32})
    CHECK(checkGradientElements(backward, CallElements(dtype)).isOk());
  CHECK(checkGradientElements(Kind(), CallElements(DType::e4m3)).isOk());
  CHECK(checkGradientElements(backward, CallElements(DType::e4m3)).message() ==
        "serves gradients of bf16, fp16 and fp32, not of e4m3; those of bf16 q, k and v, with out and lse of the "
        "forward call, are its gradients");
}

TEST_CASE("scales of blocks of rows are for q, k and v of e4m3 in forward calls, and for what is quantised") {
  const CallElements blocks = CallElements(DType::e4m3).withScaleRows(64);
  CHECK(checkScaleRows(Kind{KindBase::decode}, blocks).message() ==
        "serves scales of heads, not of blocks of 64 rows; calls of kinds forward, quantize and quantize_rotated have "
        "these");
  CHECK(checkScaleRows(Kind(), CallElements(DType::bf16).withScaleRows(128)).message() ==
        "serves scales of blocks of rows beside q, k and v of e4m3, not beside bf16, bf16 and bf16; leave them scales "
        "of heads");
  CHECK_FALSE(checkScaleRows(Kind(), CallElements(DType::bf16).withKeys(DType::e4m3).withScaleRows(64)).isOk());
  CHECK(checkScaleRows(Kind(), CallElements(DType::e4m3).withScaleRows(32)).message() ==
        "serves scales of heads, or of blocks of 64 or 128 rows of q and k, not of blocks of 32 rows");
  for (const Kind &kind : Kind::all())
    CHECK(kind.hasSize(RoleExtent::kBlocks) == kind.takesScaleRows());
}

TEST_CASE("the text of a kernel's kind says of what precision products are, and fp32 inputs need not say that out is") {
  const Result<KindText> text = KindText::parse("backward_of_2_fp32_out_tf32");
  REQUIRE(text.isOk());
  CHECK(text->precision == Precision::tf32);
  CHECK(text->out == DType::fp32);
  CHECK(text->str() == "backward_of_2_fp32_out_tf32");
  CHECK(KindText::parse("forward")->precision == Precision::exact);
  const KindText rounded = KindText::of(Kind(), CallElements(DType::fp32, DType::fp32, Precision::tf32));
  CHECK(rounded.str() == "forward_tf32");
  CHECK(rounded.elements(DType::fp32).precision == Precision::tf32);
  CHECK(rounded.elements(DType::fp32).out == DType::fp32);
  CHECK(KindText::of(Kind(), CallElements(DType::bf16, DType::fp32)).str() == "forward_fp32_out");
  const CallShape shape{Kind(), CallElements(DType::fp32, DType::fp32, Precision::tf32), 64, 64};
  CHECK(KernelFamily::of("digest", shape, "heddle").kind == "forward_tf32");
  CHECK(KernelFamily::of("digest", shape, "heddle").shape()->elements.precision == Precision::tf32);
  const Result<KindText> fast = KindText::parse("forward_fp16_out_fast_scale_rows_64");
  REQUIRE(fast.isOk());
  CHECK(fast->precision == Precision::fast);
  CHECK(fast->str() == "forward_fp16_out_fast_scale_rows_64");
  CHECK(fast->elements(DType::e4m3).precision == Precision::fast);
  CHECK_FALSE(KindText::parse("forward_tf32_fast").isOk());
  CHECK_FALSE(KindText::parse("forward_fast_fp16_out").isOk());
}

TEST_CASE("records are of the shape that they are filed under, but that k and v are of the type of q") {
  const CallShape shape{{KindBase::backward, Adds::all, false, {2}}, CallElements(DType::fp16, DType::fp32), 128, 64};
  const KernelFamily family = KernelFamily::of("digest", shape, "heddle");
  CHECK(family.kind == "backward_accumulate_of_2_fp32_out");
  const Result<CallShape> read = family.shape();
  REQUIRE(read.isOk());
  CHECK(read->kind == shape.kind);
  CHECK(read->elements.v == DType::fp16);
  CHECK(read->elements.out == DType::fp32);
  CHECK(read->headDim == 128);
  CHECK(read->valueDim == 64);
}

TEST_CASE("calls that add to gradients read them, in fp32; other roles are the same") {
  const Kind adding = {KindBase::backward, Adds::all}, writing = {KindBase::backward};
  for (const KindRole &role : writing.roles()) {
    const bool isWritten = includes(role.access, Access::write);
    CHECK(adding.find(role.role)->access == (isWritten ? Access::both : role.access));
    if (isWritten)
      CHECK(specOf(*adding.find(role.role)).element == RoleElement::fp32);
  }
  const Kind toKeys = {KindBase::backward, Adds::keys};
  CHECK(toKeys.addsTo(Role::dK));
  CHECK(toKeys.addsTo(Role::dV));
  CHECK(!toKeys.addsTo(Role::dQ));
  CHECK(specOf(*toKeys.find(Role::dQ)).element == RoleElement::q);
}

TEST_CASE("calls that quantise write e4m3 whatever they read, and walk no pattern") {
  const Kind quantize = {KindBase::quantize};
  CHECK(!quantize.walksPattern());
  CHECK(Kind().walksPattern());
  CHECK(quantize.flopsOfPair(64, 64) == 0);
  for (DType dtype : {DType::bf16, DType::fp16, DType::fp32})
    CHECK(CallElements(dtype).of(specOf(Role::quantizedV).element) == DType::e4m3);
  CHECK(quantize.find(Role::descaleK)->access == Access::write);
  const std::vector<KindRole> &rotated = Kind{KindBase::quantizeRotated}.roles();
  CHECK(rotated.size() == quantize.roles().size() + 1);
  for (size_t i = 0; i < quantize.roles().size(); ++i)
    CHECK(rotated[i].role == quantize.roles()[i].role);
  CHECK(rotated.back().role == Role::rotation);
  CHECK(rotated.back().presence == Presence::required);
  CHECK(Kind().find(Role::descaleK)->access == Access::read);
}

TEST_CASE("no kind has a role twice, and every kind writes something") {
  for (const Kind &kind : Kind::all()) {
    CAPTURE(kind.name());
    std::set<Role> seen;
    bool writes = false;
    for (const KindRole &role : kind.roles()) {
      CHECK(seen.insert(role.role).second);
      CHECK(kind.find(role.role) == &role);
      writes = writes || includes(role.access, Access::write);
    }
    CHECK(writes);
  }
}

TEST_CASE("of key-major values the extents of rows and of their elements are exchanged, and of nothing else") {
  for (Kind kind : Kind::all()) {
    if (kind.hasKeyMajorValues || !kind.takesKeyMajorValues())
      continue;
    Kind turned = kind;
    turned.hasKeyMajorValues = true;
    CHECK(turned != kind);
    CHECK(turned.str() == kind.str() + "_v_key_major");
    const Role values = kind.find(Role::quantizedV) ? Role::quantizedV : Role::v;
    for (const KindRole &known : kind.roles()) {
      const RoleSpec plain = specOf(known), other = specOf(*turned.find(known.role));
      const bool isTurned = known.role == values;
      CHECK(isKeyMajor(other) == isTurned);
      CHECK(other.rows == (isTurned ? plain.dim : plain.rows));
      CHECK(other.dim == (isTurned ? plain.rows : plain.dim));
    }
  }
  const Result<KindText> text = KindText::parse("forward_v_key_major_fp16_out_scale_rows_64");
  REQUIRE(text.isOk());
  CHECK(text->kind.hasKeyMajorValues);
  CHECK(text->str() == "forward_v_key_major_fp16_out_scale_rows_64");
}

TEST_CASE("key-major values are read beside e4m3 alone, and written whatever q, k and v are") {
  const Kind forward = {KindBase::forward, Adds::none, false, {}, true},
             quantize = {KindBase::quantize, Adds::none, false, {}, true};
  CHECK(checkKeyMajor(forward, CallElements(DType::e4m3, DType::fp16)).isOk());
  CHECK(checkKeyMajor(Kind(), CallElements(DType::bf16)).isOk());
  CHECK(checkKeyMajor(quantize, CallElements(DType::bf16)).isOk());
  CHECK(checkKeyMajor(forward, CallElements(DType::bf16).withKeys(DType::e4m3)).message() ==
        "serves v that lies key-major beside q, k and v of e4m3, not beside bf16, e4m3 and e4m3; make v contiguous in "
        "dim");
  CHECK_FALSE(checkKeyMajor(forward, CallElements(DType::bf16)).isOk());
}
