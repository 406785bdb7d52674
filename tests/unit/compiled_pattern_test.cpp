#include "compiler/Library/CompiledPattern.h"

#include <doctest/doctest.h>

using namespace heddle;

TEST_CASE("a call and one of sequences have buckets of their own where all their sizes are alike, whoever asks first") {
  const CallShape forward = {}, decode = {*Kind::parse("decode"), CallElements(DType::bf16), 128, 128};
  ProblemShape shape;
  shape.batch = 4, shape.heads = 16, shape.kvHeads = 4, shape.seqlenQ = 16, shape.seqlenK = 4096;
  for (bool isForwardFirst : {false, true}) {
    auto pattern = CompiledPattern::create("attn.pattern @p() { %m = attn.causal attn.softmax union(%m) }", "text", "");
    REQUIRE_MESSAGE(pattern.isOk(), pattern.status().message());
    for (bool isForward : {isForwardFirst, !isForwardFirst}) {
      const Result<ProblemBucket> bucket = (*pattern)->bucket(shape, isForward ? forward : decode, 132);
      REQUIRE(bucket.isOk());
      CHECK(bucket->queryRows == (isForward ? 4 : 6));
    }
  }
}
