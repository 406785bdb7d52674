// Inputs of calls of sequences: what random ones are, and what their tensors must be.
#include "compiler/Io/AttentionInputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>

using namespace heddle;

namespace {

bool mentions(const Status &status, const std::string &text) {
  return status.message().find(text) != std::string::npos;
}

} // namespace

TEST_CASE("calls of sequences: tables behind each other, and first pages that sequences share") {
  const Kind decode = {KindBase::decode}, cascade = {KindBase::cascade};
  const AttentionSizes sizes{5, 2, 0, 4, 2, 8, 8, 20, 16, 4};
  const AttentionInputs indices = *randomAttentionInputs(sizes, DType::fp16, 7, decode, {{Role::kvIndptr}, {}});
  CHECK(!indices.isGiven(Role::pageTable));
  CHECK(!indices.isGiven(Role::sequsedK));
  CHECK(indices.kvIndptr.get(1) == 4); // the first sequence has all that its table has room for
  CHECK(indices.kvLastPageLen.get(0) == 16);
  CHECK(indices.kvIndices.elements() == int64_t(indices.kvIndptr.get(5)));
  CHECK(makeAttentionInputs(indices, decode)->sizes.sequences == 5);
  AttentionInputs changed = indices;
  changed.kvIndices.set(1, 20);
  CHECK(mentions(makeAttentionInputs(changed, decode).status(), "kv_indices: sequence 0, page 1: expected 0 to 19"));
  changed = indices, changed.kvLastPageLen = {};
  CHECK(
      mentions(makeAttentionInputs(changed, decode).status(), "expected tensors 'kv_indices' and 'kv_last_page_len'"));
  changed = indices, changed.pageTable = HostTensor::zeros(DType::i32, {5, indices.kvIndices.elements()});
  CHECK(mentions(makeAttentionInputs(changed, decode).status(), "'page_table' or 'kv_indptr', not both"));

  AttentionInputs shared = *randomAttentionInputs(sizes, DType::fp16, 7, cascade);
  const auto wholePages = [&](int64_t s) { return std::min(shared.sequsedK.get(s - 1), shared.sequsedK.get(s)) / 16; };
  CHECK(shared.sharedK.get(0) == 0);
  CHECK(shared.sharedK.get(1) == 16 * std::floor(wholePages(1)));
  CHECK(shared.sharedK.get(3) == 0);
  CHECK(std::memcmp(shared.pageTable.data.data(), shared.pageTable.data.data() + 4 * sizeof(int32_t),
                    size_t(wholePages(1)) * sizeof(int32_t)) == 0);
  shared.sharedK = {};
  CHECK(mentions(makeAttentionInputs(shared, cascade).status(), "tensor 'shared_k'"));
}
