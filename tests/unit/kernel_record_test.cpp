//===- kernel_record_test.cpp - keys, buckets and field lists ---------------===//
#include "runtime/Core/FieldText.h"
#include "runtime/Core/KernelRecord.h"
#include "runtime/Core/QueryRows.h"

#include <doctest/doctest.h>

#include <limits>
#include <set>

using namespace heddle;

namespace {

template <class T> std::set<std::string> fieldNames() {
  std::set<std::string> names;
  T::fields([&](const char *name, auto) { CHECK_MESSAGE(names.insert(name).second, name << " is listed twice"); });
  return names;
}

WinnerKey someKey() {
  KernelFamily family;
  family.pattern = "p";
  family.headDim = family.valueDim = 64;
  family.generator = "g1";
  return WinnerKey(family, {3, 2, 4}, {"Some GPU", "sm_90", 132, 140});
}

} // namespace

TEST_CASE("field lists name every field once") {
  CHECK(fieldNames<WinnerKey>().size() == 22);
  CHECK(fieldNames<Winner>().size() == 27);
  CHECK(fieldNames<KernelRecord>().count("cubin") == 1);
  CHECK(fieldNames<Trial>().count("median_us") == 1);
}

TEST_CASE("buckets double") {
  CHECK(sizeBucket(0, 5) == 0);
  CHECK(sizeBucket(5, 5) == 0);
  CHECK(sizeBucket(6, 5) == 1);
  CHECK(sizeBucket(10, 5) == 1);
  CHECK(sizeBucket(11, 5) == 2);
  CHECK(sizeBucket(INT64_MAX, 1) == 63);
  CHECK(sizeBucket(7, 0) == 3);
  ProblemBucket bucket = ProblemBucket::of(1024, 132, 4096, 4, 9);
  CHECK(bucket.workPerSm == 3);
  CHECK(bucket.tilesPerRow == 2);
  CHECK(bucket.gqaRatio == 4);
  CHECK(bucket.queryRows == 9);
}

namespace {

CallShape callOf(DType dtype, const Kind &kind = {}) { return {kind, CallElements(dtype), 128, 128}; }

Kind keyMajor() {
  Kind kind;
  kind.hasKeyMajorValues = true;
  return kind;
}

} // namespace

TEST_CASE("rows have a bucket up to 512, and those of calls with values of bytes to turn over one from 8k on") {
  const CallShape turning = callOf(DType::e4m3);
  CallShape ofBlocks = turning;
  ofBlocks.elements.scaleRows = 64;
  CHECK(turning.hasValuesToTurn());
  CHECK(ofBlocks.hasValuesToTurn());
  const CallShape others[] = {callOf(DType::bf16), callOf(DType::e4m3, keyMajor()),
                              callOf(DType::e4m3, *Kind::parse("decode")), callOf(DType::fp32)};
  for (const CallShape &call : others) {
    CHECK_FALSE(call.hasValuesToTurn());
    for (auto [queries, rows] :
         {std::pair<int64_t, int64_t>(0, 512), {1, 64}, {64, 64}, {65, 128}, {256, 256}, {257, 512}, {1 << 20, 512}})
      CHECK(ProblemBucket::rowsOfDefault(queries, call) == rows);
    for (auto [queries, bucket] :
         {std::pair<int64_t, int64_t>(1, 0), {64, 6}, {65, 7}, {300, 9}, {8191, 9}, {8192, 9}, {1 << 20, 9}})
      CHECK(ProblemBucket::rowsBucket(queries, call) == bucket);
  }
  for (auto [queries, rows] : {std::pair<int64_t, int64_t>(0, 8192),
                               {1, 64},
                               {256, 256},
                               {257, 512},
                               {4096, 512},
                               {8191, 512},
                               {8192, 8192},
                               {1 << 20, 8192}})
    CHECK(ProblemBucket::rowsOfDefault(queries, turning) == rows);
  for (auto [queries, bucket] :
       {std::pair<int64_t, int64_t>(1, 0), {65, 7}, {300, 9}, {8191, 9}, {8192, 13}, {1 << 20, 13}})
    CHECK(ProblemBucket::rowsBucket(queries, turning) == bucket);
}

TEST_CASE("rows of sequences are those that share a kv head; many of them have another default than any number") {
  for (const char *kind : {"decode", "decode_invariant", "cascade"})
    for (DType dtype : {DType::bf16, DType::e4m3}) {
      const CallShape call = callOf(dtype, *Kind::parse(kind));
      CHECK(queryRowsOf(1, 32, 8, call) == 4);
      CHECK(queryRowsOf(32, 32, 8, call) == 128);
      CHECK(queryRowsOf(64, 32, 32, call) == 64);
      CHECK(queryRowsOf(64, 0, 0, call) == 64);
      for (int64_t queries : {int64_t(1) << 40, std::numeric_limits<int64_t>::max()})
        CHECK(queryRowsOf(queries, std::numeric_limits<int64_t>::max(), 1, call) == 256);
      CHECK(queryRowsOf(0, 32, 8, call) == 0);
      CHECK(queryRowsOf(std::numeric_limits<int64_t>::min(), 32, 8, call) == 0);
      const int64_t many = queryRowsOf(1 << 20, 32, 8, call);
      CHECK(many == 256);
      CHECK(ProblemBucket::rowsOfDefault(many, call) != ProblemBucket::rowsOfDefault(0, call));
    }
  CHECK(queryRowsOf(64, 32, 8, callOf(DType::bf16)) == 64);
  CHECK(queryRowsOf(1 << 20, 32, 8, callOf(DType::bf16)) == 1 << 20);
}

TEST_CASE("buckets of rows are as long as each other on one side of 8k, of calls with values to turn over") {
  for (const CallShape &call : {callOf(DType::bf16), callOf(DType::e4m3)})
    for (int64_t a : {1, 64, 200, 257, 5000, 8191, 8192, 100000})
      for (int64_t b : {1, 100, 8191, 8192, 50000})
        CHECK(ProblemBucket::areAsLong(ProblemBucket::rowsBucket(a, call), ProblemBucket::rowsBucket(b, call)) ==
              (!call.hasValuesToTurn() || (a < 8192) == (b < 8192)));
  CHECK(ProblemBucket::areAsLong(-1, 13));
  CHECK(ProblemBucket::areAsLong(9, -1));
}

TEST_CASE("a problem reads as its sizes and what else tells it apart") {
  CHECK(ExactProblem{2, 16, 16, 8192, 8192}.str() == "2x16x8192");
  CHECK(ExactProblem{1, 32, 8, 1, 4096, 0, 0, "1023"}.str() == "1x32[8]x1x4096 (1023)");
  CHECK(ExactProblem().str() == "any problem");
}

TEST_CASE("every field of a key changes its digest") {
  std::string base = Trial::sessionKey(someKey());
  WinnerKey::fields([&](const char *name, auto member) {
    WinnerKey changed = someKey();
    auto &value = changed.*member;
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::string>)
      value += "x";
    else if constexpr (std::is_same_v<Value, DType>)
      value = DType::fp16;
    else
      value += 1;
    CHECK_MESSAGE(Trial::sessionKey(changed) != base, name);
  });
  CHECK(Trial::sessionKey(someKey()) == base);
}

TEST_CASE("values cannot forge other fields in text") {
  WinnerKey a = someKey(), b = someKey();
  a.pattern = "p\nkind=backward";
  b.pattern = "p\\nkind=backward";
  CHECK(fieldText(a) != fieldText(b));
  CHECK(fieldText(a).find("pattern=p\\nkind=backward\n") == 0);
  CHECK(fieldValueText(0.1) == "0.1");
}

TEST_CASE("which architectures run which code") {
  CHECK(kernelRunsOn("sm_80", "sm_80"));
  CHECK(kernelRunsOn("sm_80", "sm_89"));
  CHECK(!kernelRunsOn("sm_89", "sm_80"));
  CHECK(!kernelRunsOn("sm_80", "sm_90"));
  CHECK(kernelRunsOn("sm_90a", "sm_90"));
  CHECK(!kernelRunsOn("sm_100a", "sm_103"));
  CHECK(kernelRunsOn("sm_100f", "sm_103"));
  CHECK(!kernelRunsOn("sm_100f", "sm_120"));
  CHECK(kernelRunsOn("compute_80", "sm_120"));
  CHECK(!kernelRunsOn("compute_90", "sm_80"));
  CHECK(!kernelRunsOn("compute_90a", "sm_100"));
  for (const char *bad : {"", "sm_", "sm_x", "sm_90ab", "sm_9", "90", "gfx90a", "compute_"})
    CHECK_FALSE(kernelRunsOn(bad, "sm_90"));
  CHECK_FALSE(kernelRunsOn("sm_90", "H200"));
}
