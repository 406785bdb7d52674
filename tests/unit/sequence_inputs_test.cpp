// Inputs of calls of sequences: what random ones are, and what their tensors must be.
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Io/ServedKeys.h"

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

  changed = indices, changed.kvIndptr = HostTensor::zeros(DType::i64, indices.kvIndptr.shape);
  CHECK(mentions(makeAttentionInputs(changed, decode).status(), "tensor 'kv_indptr' is i64 [6]; expected i32"));

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

TEST_CASE("keys that are served: lengths of a range, and room for the longest in whole pages") {
  CHECK(LengthRange::parse("4k")->text() == "4096");
  CHECK(LengthRange::parse("512-32k")->text() == "512-32768");
  CHECK(LengthRange::parse("0-7")->least == 0);
  for (const char *wrong : {"", "0", "9-5", "-5", "5-", "one", "1-2G"})
    CHECK_MESSAGE(!LengthRange::parse(wrong), wrong);
  const ServedKeys keys = {{KeyPlaces::indices, 16}, {5, 70}};
  CHECK(keys.room() == 80);
  CHECK(keys.key() == "keys:5-70 indices:16");
  CHECK(keys.text() == "5-70 keys, pages of 16, indices");
  CHECK(ServedKeys{{KeyPlaces::rows}, {9, 9}}.key() == "keys:9 rows:");
  CHECK(!ServedKeys().isGiven());
}

TEST_CASE("batches of served keys are calls, wherever their keys lie") {
  const CallElements elements(DType::bf16, DType::bf16);
  for (KeyPlaces places : allKeyPlaces()) {
    CAPTURE(std::string(keyPlacesName(places)));
    const ServedKeys keys = {{places, 16}, {5, 70}};
    const AttentionSizes sizes{9, 1, keys.room(), 4, 2, 32, 32};
    Result<ServedBatch> batch = randomServedBatch(sizes, keys, elements, {KindBase::decode}, 3);
    REQUIRE_MESSAGE(batch.isOk(), batch.status().message());
    CHECK(batch->lengths.size() == (places == KeyPlaces::lists ? 18 : 9));
    for (int64_t length : batch->lengths)
      CHECK((length >= 5 && length <= 70));
    const auto asCall = makeAttentionInputs(batch->inputs, {KindBase::decode});
    CHECK_MESSAGE(asCall.isOk(), asCall.status().message());
    CHECK(batch->inputs.isGiven(Role::cuSeqlensK) == (places == KeyPlaces::rows));
    CHECK(batch->inputs.isGiven(Role::kvIndptr) == (places == KeyPlaces::indices));
    int64_t pages = 0;
    for (int64_t length : batch->lengths)
      pages += (length + 15) / 16;
    CHECK(batch->inputs.sizes.pages == (places == KeyPlaces::rows ? 1 : pages)); // each sequence's own
  }
}

TEST_CASE("a cache that would be larger than 2 GiB is shared, and refused where keys lie in rows") {
  const CallElements elements(DType::bf16, DType::bf16);
  const AttentionSizes sizes{64, 1, int64_t(1) << 20, 8, 8, 2, 2}; // 64 B a key, 4 GiB
  const ServedKeys rows = {{KeyPlaces::rows}, {1 << 20, 1 << 20}};
  const auto refused = randomServedBatch(sizes, rows, elements, {KindBase::decode}, 3);
  CHECK(refused.status().code() == StatusCode::invalidArgument);
  CHECK(mentions(refused.status(), "more than 2 GiB"));
}
