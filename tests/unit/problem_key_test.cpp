// What a problem is filed under: buckets follow sizes and not configurations, and shapes that no call can have are refused.
#include "support/Places.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Pattern/PatternFile.h"
#include "runtime/Core/FieldText.h"

#include <doctest/doctest.h>

using namespace heddle;

namespace {

std::unique_ptr<PatternFile> shipped(const std::string &name) {
  auto file = PatternFile::load(test::places().patterns + "/" + name + ".mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  return file.take();
}

} // namespace

TEST_CASE("buckets count 128 x 128 tiles") {
  auto full = shipped("full");
  ProblemShape shape;
  shape.batch = 2;
  shape.heads = 8;
  shape.kvHeads = 2;
  shape.seqlenQ = shape.seqlenK = 1024;
  REQUIRE(checkShape(*full, shape).isOk());
  ProblemBucket bucket = problemBucket(*full, shape, 132);
  // 2 * 8 * 8 = 128 query tiles on 132 SMs, 8 key tiles each.
  CHECK(bucket.workPerSm == 0);
  CHECK(bucket.tilesPerRow == 3);
  CHECK(bucket.gqaRatio == 4);
  CHECK(problemBucket(*full, shape, 16).workPerSm == 3);
  auto causal = shipped("causal");
  // 1 + ... + 8 = 36 tiles over 8 rows of tiles: 4.5, the bucket of at most 8.
  CHECK(problemBucket(*causal, shape, 132).tilesPerRow == 3);
  shape.seqlenQ = shape.seqlenK = 128;
  CHECK(problemBucket(*causal, shape, 132).tilesPerRow == 0);
}

TEST_CASE("rows of sequences are those of a kv head, the mean where they lie behind each other") {
  auto causal = shipped("causal");
  const CallShape forward = {}, decode = {*Kind::parse("decode"), CallElements(DType::bf16), 128, 128};
  ProblemShape shape;
  shape.batch = 4, shape.heads = 16, shape.kvHeads = 4, shape.seqlenQ = 16, shape.seqlenK = 4096;
  CHECK(problemBucket(*causal, shape, 132, forward).queryRows == 4);
  CHECK(problemBucket(*causal, shape, 132, decode).queryRows == 6);
  shape.batch = 1, shape.sequences = 4, shape.seqlenQ = 65;
  CHECK(problemBucket(*causal, shape, 132, decode).queryRows == 7);
}

TEST_CASE(
    "a decode batch and a prefill of as many tiles have different buckets, lengths of one bucket different keys") {
  auto full = shipped("full");
  ProblemShape decode, prefill;
  decode.batch = 64;
  decode.heads = decode.kvHeads = prefill.heads = prefill.kvHeads = 8;
  decode.seqlenQ = 1;
  decode.seqlenK = prefill.seqlenQ = prefill.seqlenK = 8192;
  const ProblemBucket one = problemBucket(*full, decode, 132), other = problemBucket(*full, prefill, 132);
  CHECK(one.workPerSm == other.workPerSm);
  CHECK(one.tilesPerRow == other.tilesPerRow);
  CHECK(one.gqaRatio == other.gqaRatio);
  CHECK_FALSE(fieldsEqual(one, other));

  auto causal = shipped("causal");
  const DeviceIdentity gpu{"GPU", "sm_90", 132, 80};
  ProblemShape shorter = prefill, longer = prefill;
  shorter.seqlenQ = shorter.seqlenK = 10240;
  longer.seqlenQ = longer.seqlenK = 12288;
  const WinnerKey a = winnerKey(*causal, shorter, {}, gpu), b = winnerKey(*causal, longer, {}, gpu);
  CHECK(fieldsEqual(static_cast<const ProblemBucket &>(a), static_cast<const ProblemBucket &>(b)));
  CHECK(Trial::sessionKey(a) != Trial::sessionKey(b));
}

TEST_CASE("a problem has its arguments and what tensors of integers hold") {
  ProblemShape shape;
  shape.parameters = {64, 2};
  shape.operands = {{}, OperandTensor::integers({2}, {3, 4})};
  const std::string first = exactProblem(shape).arguments;
  CHECK(first.compare(0, 7, "64 2 1:") == 0);
  shape.operands[1] = OperandTensor::integers({2}, {3, 5});
  CHECK(exactProblem(shape).arguments != first);
}

TEST_CASE("shapes that no call can have are refused") {
  auto window = shipped("sliding_window");
  ProblemShape shape;
  shape.heads = 6;
  shape.kvHeads = 4;
  shape.parameters = {7};
  CHECK(checkShape(*window, shape).message() == "expected heads to be a multiple of kv heads, got 6 and 4");
  shape.kvHeads = 0;
  CHECK(checkShape(*window, shape).message() == "expected kv heads >= 1 and below 2^31, got 0");
  shape.kvHeads = 3;
  shape.seqlenK = -1;
  CHECK(checkShape(*window, shape).message() == "expected seqlen-k >= 0 and below 2^31, got -1");
  shape.seqlenK = (1 << 30) + 1;
  CHECK(checkShape(*window, shape).message() ==
        "expected at most 1073741824 keys, got 1073741825: positions lie in [-2^30, 2^30)");
  shape.seqlenK = 1;
  shape.kOrigin = 1 << 30;
  CHECK(checkShape(*window, shape).message() ==
        "k_origin: expected -1073741824 to 1073741823 for 1 keys, got 1073741824: positions lie in [-2^30, 2^30)");
  shape.kOrigin = 0;
  CHECK(checkShape(*window, shape).isOk());
  shape.parameters.clear();
  CHECK_FALSE(checkShape(*window, shape).isOk());
}
