//===- sequence_checks_test.cpp - what calls on pages must be ------------------===//
// In the same words wherever a call comes in: kernels and the processors ask these checks.
#include "runtime/Core/SequenceChecks.h"
#include "runtime/Device/Arguments.h"
#include "runtime/Device/Device.h"
#include "runtime/Device/Kernel.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace heddle;

namespace {

void *at(uintptr_t address) { return reinterpret_cast<void *>(address); }

/// Three sequences of two queries, 4 heads on 2, 40 pages of 16 keys, at most 10 of them for a sequence.
struct Call {
  explicit Call(KindBase base = KindBase::decode) : kind{base} {
    args.q = args.out = contiguousTensor(at(0x1000000), DType::bf16, {3, 2, 4, 64});
    args.out.ptr = at(0x2000000);
    args.k = contiguousTensor(at(0x3000000), DType::bf16, {40, 16, 2, 64});
    args.v = contiguousTensor(at(0x4000000), DType::bf16, {40, 16, 2, 64});
    args.lse = static_cast<float *>(at(0x5000000));
    args.page_table = static_cast<int32_t *>(at(0x6000000));
    args.seqused_k = static_cast<int32_t *>(at(0x7000000));
    args.max_pages = 10;
  }
  void makeRagged() {
    args.q = args.out = contiguousTensor(at(0x1000000), DType::bf16, {1, 7, 4, 64});
    args.out.ptr = at(0x2000000);
    args.cu_seqlens_q = static_cast<int32_t *>(at(0x8000000));
    args.sequences = 3;
  }
  void makeRows() {
    args.k = contiguousTensor(at(0x3000000), DType::bf16, {1, 500, 2, 64});
    args.v = contiguousTensor(at(0x4000000), DType::bf16, {1, 500, 2, 64});
    args.cu_seqlens_k = static_cast<int32_t *>(at(0x9000000));
    args.page_table = nullptr, args.seqused_k = nullptr, args.max_pages = 0;
  }
  Status check() {
    CallSizes sizes(symbols);
    HEDDLE_TRY(checkForeign(kind, args));
    return checkRoles(rules, args, sizes, symbols);
  }
  std::string refusal() { return check().message(); }

  const Kind kind;
  CallRules rules{kind};
  AttentionArgs args = makeAttentionArgs();
  LaunchSymbols symbols;
};

} // namespace

TEST_CASE("sizes of a call on pages are those of its tensors, and how many pages a sequence has at most") {
  Call call;
  REQUIRE_MESSAGE(call.check().isOk(), call.refusal());
  const std::pair<LaunchSymbol, int64_t> sizes[] = {{LaunchSymbol::batch, 3},     {LaunchSymbol::sequences, 3},
                                                    {LaunchSymbol::pages, 40},    {LaunchSymbol::pageSize, 16},
                                                    {LaunchSymbol::maxPages, 10}, {LaunchSymbol::seqlenK, 160}};
  for (const auto &[symbol, value] : sizes)
    CHECK(call.symbols[symbol] == value);
  CHECK(elementsOf(specOf(Role::pageTable), call.symbols) == 30);
  CHECK(elementsOf(specOf(Role::sequsedK), call.symbols) == 3);
  call.makeRagged();
  REQUIRE_MESSAGE(call.check().isOk(), call.refusal());
  CHECK(call.symbols[LaunchSymbol::sequences] == 3);
  CHECK(elementsOf(specOf(Role::cuSeqlensQ), call.symbols) == 4);
  CHECK(elementsOf(specOf(Role::lse), call.symbols) == 28);
}

TEST_CASE("each kv head may have a table, and keys may lie in rows") {
  Call call;
  call.args.tables = 2;
  REQUIRE_MESSAGE(call.check().isOk(), call.refusal());
  CHECK(elementsOf(specOf(Role::pageTable), call.symbols) == 60);
  CHECK(elementsOf(specOf(Role::sequsedK), call.symbols) == 6);
  call.args.tables = 0;
  call.makeRows();
  REQUIRE_MESSAGE(call.check().isOk(), call.refusal());
  CHECK(call.symbols[LaunchSymbol::seqlenK] == 500);
  CHECK(call.symbols[LaunchSymbol::maxPages] == 1);
  CHECK(elementsOf(specOf(Role::cuSeqlensK), call.symbols) == 4);
  call.args.seqused_k = static_cast<int32_t *>(at(0x7000000));
  CHECK(call.refusal() == "");
}

TEST_CASE("keys and heads of a page in any order, K and V in one tensor, page_size and sequences said or not") {
  Call call;
  std::swap(call.args.k.stride[1], call.args.k.stride[2]);
  call.args.k.stride[1] = 64, call.args.k.stride[2] = 16 * 64;
  call.args.v.ptr = at(0x3000000 + 16 * 2 * 64 * 2);
  call.args.k.stride[0] = call.args.v.stride[0] = 2 * 16 * 2 * 64;
  call.args.page_size = 16, call.args.sequences = 3;
  CHECK(call.refusal() == "");
}

TEST_CASE("what does not fit is named") {
  const std::string prefix = "attention arguments: ";
  const std::pair<void (*)(Call &), const char *> cases[] = {
      {[](Call &c) { c.args.v.size[0] = 39; }, "v: size of page: expected 40, got 39"},
      {[](Call &c) { c.args.v.size[1] = 8; }, "v: size of row: expected 16, got 8"},
      {[](Call &c) { c.args.k.size[1] = c.args.v.size[1] = 257; },
       "k: size of row: expected pages of 1 to 256 keys, got 257"},
      {[](Call &c) { c.args.k.size[1] = c.args.v.size[1] = 0; },
       "k: size of row: expected pages of 1 to 256 keys, got 0"},
      {[](Call &c) { c.args.k.size[2] = c.args.v.size[2] = 3; },
       "k: size of head: expected a divisor of the 4 query heads, got 3"},
      {[](Call &c) { c.args.page_size = 32; }, "page_size: expected 16, the rows of k, or 0, got 32"},
      {[](Call &c) { c.args.max_pages = -1; },
       "max_pages: expected 0 to 67108864 pages of 16 keys, as positions lie below 2^30, got -1"},
      {[](Call &c) { c.args.max_pages = 1 << 27; },
       "max_pages: expected 0 to 67108864 pages of 16 keys, as positions lie below 2^30, got 134217728"},
      {[](Call &c) { c.args.sequences = 2; }, "sequences: expected 3, the batch of q, or 0, got 2"},
      {[](Call &c) { c.args.q_origin = 5; },
       "q_origin: expected 0, got 5; the queries of a sequence in pages are its last positions"},
      {[](Call &c) { c.args.k_origin = 64; },
       "k_origin: expected 0, got 64; the queries of a sequence in pages are its last positions"},
      {[](Call &c) { c.args.page_table = nullptr; },
       "page_table: expected a table of pages, or cu_seqlens_k of keys in rows, got null"},
      {[](Call &c) { c.args.seqused_k = nullptr; },
       "seqused_k: expected the lengths of sequences beside page_table, got null"},
      {[](Call &c) { c.args.tables = 3; }, "tables: expected 0, 1 or 2, the heads of k, got 3"},
      {[](Call &c) { c.args.tables = -1; }, "tables: expected 0, 1 or 2, the heads of k, got -1"},
      {[](Call &c) { c.args.cu_seqlens_k = static_cast<int32_t *>(at(0x9000000)); },
       "cu_seqlens_k: expected null beside page_table, which calls of another form have"},
      {[](Call &c) { c.makeRows(), c.args.k.size[0] = c.args.v.size[0] = 2; },
       "k: size of page: expected 1 beside cu_seqlens_k, got 2"},
      {[](Call &c) { c.makeRows(), c.args.max_pages = 4; }, "max_pages: expected 0 beside cu_seqlens_k, got 4"},
      {[](Call &c) { c.makeRows(), c.args.tables = 2; }, "tables: expected 0 beside cu_seqlens_k, got 2"},
      {[](Call &c) { c.makeRows(), c.args.page_size = 16; }, "page_size: expected 500, the rows of k, or 0, got 16"},
      {[](Call &c) { c.makeRows(), c.args.k.size[1] = c.args.v.size[1] = (int64_t(1) << 30) + 1; },
       "k: size of row: expected at most 2^30 rows beside cu_seqlens_k, as positions lie below that, got 1073741825"},
      {[](Call &c) { c.args.seqused_k = static_cast<int32_t *>(at(0x7000002)); },
       "seqused_k: address: expected device memory at a multiple of 4 bytes, got remainder 2"},
      {[](Call &c) { c.args.cu_seqlens_q = static_cast<int32_t *>(at(0x8000000)); },
       "q: size of batch: expected 1 beside cu_seqlens_q, got 3"},
      {[](Call &c) { c.makeRagged(), c.args.sequences = 0; },
       "sequences: expected how many cu_seqlens_q has the offsets of, at least 1, got 0"},
      {[](Call &c) { c.args.carry_lse = static_cast<float *>(at(0x9000000)); },
       "a call of kind decode has no carry_lse; leave it zero"}};
  for (const auto &[change, message] : cases) {
    Call call;
    change(call);
    CHECK(call.refusal() == prefix + message);
  }
}

TEST_CASE("lengths and offsets in host memory") {
  Call call;
  call.makeRagged();
  REQUIRE(call.check().isOk());
  const auto refusal = [&](std::vector<int32_t> lengths, std::vector<int32_t> offsets) {
    call.args.seqused_k = lengths.data();
    call.args.cu_seqlens_q = offsets.data();
    return checkSequenceValues(call.kind.roles(), call.args, call.symbols).message();
  };
  CHECK(refusal({0, 160, 7}, {0, 3, 3, 7}) == "");
  CHECK(refusal({0, 161, 7}, {0, 3, 3, 7}) ==
        "attention arguments: seqused_k: sequence 1: expected 0 to 160 keys, 10 pages of 16, got 161");
  CHECK(refusal({0, 160, -1}, {0, 3, 3, 7}) ==
        "attention arguments: seqused_k: sequence 2: expected 0 to 160 keys, 10 pages of 16, got -1");
  CHECK(refusal({0, 1, 7}, {1, 3, 3, 7}) == "attention arguments: cu_seqlens_q: offset 0: expected 0, got 1");
  CHECK(refusal({0, 1, 7}, {0, 3, 2, 7}) == "attention arguments: cu_seqlens_q: offset 2: expected 3 to 7, got 2");
  CHECK(refusal({0, 1, 7}, {0, 3, 3, 6}) == "attention arguments: cu_seqlens_q: offset 3: expected 7, got 6");
}

TEST_CASE("lengths of lists, and offsets of keys, in host memory") {
  Call lists;
  lists.args.tables = 2;
  REQUIRE(lists.check().isOk());
  const auto ofLists = [&](std::vector<int32_t> lengths) {
    lists.args.seqused_k = lengths.data();
    return checkSequenceValues(lists.kind.roles(), lists.args, lists.symbols).message();
  };
  CHECK(ofLists({0, 160, 7, 3, 0, 160}) == "");
  CHECK(ofLists({0, 160, 7, 3, 161, 1}) == "attention arguments: seqused_k: kv head 1, sequence 1: expected 0 to 160 "
                                           "keys, 10 pages of 16, got 161");
  Call rows;
  rows.makeRows();
  REQUIRE(rows.check().isOk());
  const auto ofRows = [&](std::vector<int32_t> offsets, std::vector<int32_t> lengths) {
    rows.args.cu_seqlens_k = offsets.data();
    rows.args.seqused_k = lengths.empty() ? nullptr : lengths.data();
    return checkSequenceValues(rows.kind.roles(), rows.args, rows.symbols).message();
  };
  CHECK(ofRows({0, 100, 100, 500}, {}) == "");
  CHECK(ofRows({0, 100, 100, 500}, {100, 0, 7}) == "");
  CHECK(ofRows({0, 100, 99, 500}, {}) == "attention arguments: cu_seqlens_k: offset 2: expected 100 to 500, got 99");
  CHECK(ofRows({0, 100, 100, 501}, {}) == "attention arguments: cu_seqlens_k: offset 3: expected 500, got 501");
  CHECK(ofRows({0, 100, 100, 500}, {100, 1, 7}) ==
        "attention arguments: seqused_k: sequence 1: expected 0 to 0 keys, as cu_seqlens_k says, got 1");
}

TEST_CASE("k and v of e4m3 beside another q have scales of sequences and kv heads, and q has none") {
  Call call;
  call.rules.elements = call.rules.elements.withKeys(DType::e4m3);
  for (heddle_tensor *tensor : {&call.args.k, &call.args.v})
    *tensor = contiguousTensor(tensor->ptr, DType::e4m3, {40, 16, 2, 64});
  CHECK(call.refusal() == "");
  call.makeRagged();
  call.args.descale_k = static_cast<float *>(at(0xa000004)), call.args.descale_v = static_cast<float *>(at(0xb000004));
  CHECK(call.refusal() == "");
  CHECK(elementsOf(specOf(*call.kind.find(Role::descaleK)), call.symbols) == 6);
  call.args.descale_v = static_cast<float *>(at(0xb000002));
  CHECK(call.refusal().find("descale_v: address: expected device memory at a multiple of 4 bytes") !=
        std::string::npos);
  call.args.descale_v = nullptr;
  call.args.v.dtype = HEDDLE_BF16;
  CHECK(call.refusal() == "attention arguments: v: dtype: expected e4m3, got bf16");
  call.args.v.dtype = HEDDLE_E4M3, call.args.descale_q = call.args.descale_k;
  CHECK(call.refusal().find("a call of kind decode has no descale_q") != std::string::npos);
  call.args.descale_q = nullptr;
  call.rules.elements = CallElements();
  call.args.k.dtype = call.args.v.dtype = HEDDLE_BF16;
  CHECK(call.refusal() == "attention arguments: descale_k: expected null beside k of bf16, which has no scales");
}

TEST_CASE("scales in host memory are finite and above 0") {
  const float good[] = {0x1p-126f, 1, 3e38f};
  const RoleSpec &role = specOf(Role::descaleV);
  CHECK(checkScales(role, good, 3).isOk());
  for (float bad : {0.0f, -1.0f, INFINITY, NAN}) {
    const float scales[] = {1, bad};
    CHECK(checkScales(role, scales, 1).isOk());
    CHECK(checkScales(role, scales, 2).message().find("descale_v: element 1: expected a finite number above 0") !=
          std::string::npos);
  }
}

namespace {

/// Three sequences, in so many entries of tables behind each other.
struct IndexedCall : Call {
  explicit IndexedCall(KindBase base = KindBase::decode) : Call(base) {
    args.page_table = nullptr, args.seqused_k = nullptr;
    args.kv_indptr = static_cast<int32_t *>(at(0xa000000));
    args.kv_indices = static_cast<int32_t *>(at(0xb000000));
    args.kv_last_page_len = static_cast<int32_t *>(at(0xc000000));
  }
  std::string of(std::vector<int32_t> offsets, std::vector<int32_t> last, std::vector<int32_t> used = {}) {
    args.kv_indptr = offsets.data(), args.kv_last_page_len = last.data();
    args.seqused_k = used.empty() ? nullptr : used.data();
    return checkSequenceValues(kind.roles(), args, symbols).message();
  }
};

} // namespace

TEST_CASE("tables behind each other: sizes, offsets, keys of last pages") {
  IndexedCall call;
  REQUIRE_MESSAGE(call.check().isOk(), call.refusal());
  CHECK(elementsOf(specOf(Role::kvIndptr), call.symbols) == 4);
  CHECK(elementsOf(specOf(Role::kvIndices), call.symbols) == 10);
  CHECK(call.symbols[LaunchSymbol::seqlenK] == 160);
  CHECK(call.of({0, 3, 3, 9}, {1, 0, 16}) == "");
  CHECK(call.of({0, 3, 2, 9}, {1, 1, 1}) == "attention arguments: kv_indptr: offset 2: expected 3 to 10, got 2");
  CHECK(call.of({0, 3, 3, 11}, {1, 1, 1}) == "attention arguments: kv_indptr: offset 3: expected 3 to 10, got 11");
  CHECK(call.of({0, 3, 3, 9}, {1, -1, 16}) ==
        "attention arguments: kv_last_page_len: sequence 1: expected 0 to 16 keys of a page, got -1");
  CHECK(call.of({0, 3, 3, 9}, {17, 0, 16}) ==
        "attention arguments: kv_last_page_len: sequence 0: expected 1 to 16 keys of a page, got 17");
  CHECK(call.of({0, 3, 3, 9}, {5, 0, 16}, {37, 0, 96}) == "");
  CHECK(call.of({0, 3, 3, 9}, {5, 0, 16}, {38, 0, 96}) ==
        "attention arguments: seqused_k: sequence 0: expected 0 to 37 keys, as kv_indptr says, got 38");
  call.args.max_pages = 1 << 29; // entries of all sequences: none of them alone is so long
  CHECK(call.refusal() == "");
  CHECK(call.symbols[LaunchSymbol::seqlenK] == int64_t(1) << 30);
  REQUIRE(call.check().isOk());
  CHECK(call.of({0, 1 << 26, 1 << 26, (1 << 26) + 1}, {16, 0, 1}) == "");
  CHECK(call.of({0, (1 << 26) + 1, 1 << 27, 1 << 27}, {1, 1, 0}) ==
        "attention arguments: kv_indptr: sequence 0: expected at most 2^30 keys, as positions lie below that, got "
        "1073741825");
}

TEST_CASE("what sequences share: as many keys as both have, in the same pages") {
  Call call(KindBase::cascade);
  REQUIRE(call.refusal().find("shared_k: address: expected device memory") != std::string::npos);
  call.args.shared_k = static_cast<int32_t *>(at(0xd000000));
  REQUIRE_MESSAGE(call.check().isOk(), call.refusal());
  std::vector<int32_t> table(30, 0), lengths = {160, 50, 40};
  table[10] = table[0] = 3, table[11] = table[1] = 7, table[2] = 9, table[12] = 8;
  const auto of = [&](std::vector<int32_t> shared) {
    call.args.page_table = table.data(), call.args.seqused_k = lengths.data(), call.args.shared_k = shared.data();
    return checkSequenceValues(call.kind.roles(), call.args, call.symbols).message();
  };
  CHECK(of({0, 0, 0}) == "");
  CHECK(of({0, 32, 0}) == "");
  CHECK(of({0, 33, 0}) ==
        "attention arguments: shared_k: sequence 1, page 2: expected 9, that of the sequence before it, got 8");
  CHECK(of({0, 0, 1}) ==
        "attention arguments: shared_k: sequence 2, page 0: expected 3, that of the sequence before it, got 0");
  CHECK(of({1, 0, 0}) == "attention arguments: shared_k: sequence 0: expected 0, as none is before it, got 1");
  CHECK(of({0, 0, 41}) == "attention arguments: shared_k: sequence 2: expected 0 to 40 keys, which it and the one "
                          "before it have, got 41");
  CHECK(of({0, -1, 0}) == "attention arguments: shared_k: sequence 1: expected 0 to 50 keys, which it and the one "
                          "before it have, got -1");
  IndexedCall indexed(KindBase::cascade);
  std::vector<int32_t> entries = {4, 5, 4, 6}, shared = {0, 17, 0};
  indexed.args.kv_indices = entries.data(), indexed.args.shared_k = shared.data();
  indexed.args.max_pages = 4;
  REQUIRE_MESSAGE(indexed.check().isOk(), indexed.refusal());
  CHECK(indexed.of({0, 2, 4, 4}, {16, 16, 0}) ==
        "attention arguments: shared_k: sequence 1, page 1: expected 5, that of the sequence before it, got 6");
  shared[1] = 16;
  CHECK(indexed.of({0, 2, 4, 4}, {16, 16, 0}) == "");
}

TEST_CASE("parts of sequences: arrays of sequences, not beside lists of kv heads, of kind decode alone") {
  for (const auto field : {&heddle_attention_args::k_origins, &heddle_attention_args::whole_k}) {
    const std::string name = field == &heddle_attention_args::k_origins ? "k_origins" : "whole_k";
    Call call;
    call.args.*field = static_cast<int32_t *>(at(0xe000000));
    CHECK(call.refusal() == "");
    call.args.tables = 2;
    CHECK(call.refusal() == "attention arguments: tables: expected 0 beside " + name + ", got 2");
    call.args.tables = 0, call.args.*field = static_cast<int32_t *>(at(0xe000002));
    CHECK(call.refusal() == "attention arguments: " + name +
                                ": address: expected device memory at a multiple of 4 bytes, got remainder 2");
    Call cascade(KindBase::cascade);
    cascade.args.*field = static_cast<int32_t *>(at(0xe000000));
    CHECK(cascade.refusal() == "attention arguments: a call of kind cascade has no " + name + "; leave it zero");
  }
}

TEST_CASE("where parts of sequences stand, in host memory: within the whole, which lies below 2^30") {
  Call call;
  REQUIRE(call.check().isOk());
  const std::vector<int32_t> lengths = {0, 160, 7};
  const auto refusal = [&](std::vector<int32_t> origins, std::vector<int32_t> wholes) {
    call.args.seqused_k = lengths.data();
    call.args.k_origins = origins.empty() ? nullptr : origins.data();
    call.args.whole_k = wholes.empty() ? nullptr : wholes.data();
    return checkSequenceValues(call.kind.roles(), call.args, call.symbols).message();
  };
  constexpr int32_t kMost = 1 << 30;
  CHECK(refusal({0, 0, 0}, {}) == "");
  CHECK(refusal({}, {0, 160, 7}) == "");
  CHECK(refusal({kMost, kMost - 160, 3}, {kMost, kMost, 10}) == "");
  CHECK(refusal({0, -1, 0}, {}) == "attention arguments: k_origins: sequence 1: expected 0 to 1073741664 before 160 "
                                   "keys, as positions lie below 2^30, got -1");
  CHECK(refusal({0, kMost - 159, 0}, {}) ==
        "attention arguments: k_origins: sequence 1: expected 0 to 1073741664 before "
        "160 keys, as positions lie below 2^30, got 1073741665");
  CHECK(refusal({5, 0, 3}, {5, 160, 9}) ==
        "attention arguments: whole_k: sequence 2: expected 10, where its part ends, to 2^30, got 9");
  CHECK(refusal({}, {-1, 160, 7}) ==
        "attention arguments: whole_k: sequence 0: expected 0, where its part ends, to 2^30, got -1");
  CHECK(refusal({}, {0, 160, kMost + 1}) ==
        "attention arguments: whole_k: sequence 2: expected 7, where its part ends, to 2^30, got 1073741825");
}
