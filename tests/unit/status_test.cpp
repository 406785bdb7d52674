//===- status_test.cpp - errors as values and the digest --------------------===//
#include "runtime/Core/DType.h"
#include "runtime/Core/Digest.h"
#include "runtime/Core/Status.h"

#include <doctest/doctest.h>

#include <memory>

using namespace heddle;

TEST_CASE("a status knows its code, its name and its message") {
  CHECK(Status().isOk());
  CHECK(Status().str() == "ok");
  Status failure = Status::notFound("lookup: no kernel for pattern 'causal'");
  CHECK(!failure.isOk());
  CHECK(failure.code() == StatusCode::notFound);
  CHECK(failure.str() == "notFound: lookup: no kernel for pattern 'causal'");
}

TEST_CASE("every code has its own name") {
  for (int a = 0; a <= int(StatusCode::internal); ++a)
    for (int b = 0; b < a; ++b)
      CHECK(std::string(statusCodeName(StatusCode(a))) != statusCodeName(StatusCode(b)));
}

static Result<int> half(int value) {
  if (value % 2 != 0)
    return Status::invalidArgument("half: " + std::to_string(value) + " is odd");
  return value / 2;
}

static Result<int> quarter(int value) {
  HEDDLE_ASSIGN(int once, half(value));
  HEDDLE_ASSIGN(int twice, half(once));
  return twice;
}

static Status checkQuarter(int value) {
  HEDDLE_TRY(quarter(value).status());
  return {};
}

TEST_CASE("results carry the value or the first failure") {
  CHECK(*quarter(12) == 3);
  CHECK(quarter(6).status().message() == "half: 3 is odd");
  CHECK(checkQuarter(8).isOk());
  CHECK(checkQuarter(7).code() == StatusCode::invalidArgument);
  Result<std::unique_ptr<int>> owned = std::make_unique<int>(5);
  CHECK(*owned.take() == 5);
}

TEST_CASE("dtype names and sizes") {
  CHECK(parseDType("bf16") == DType::bf16);
  CHECK(parseDType("fp16") == DType::fp16);
  CHECK(parseDType("fp32") == DType::fp32);
  CHECK(!parseDType("f32"));
  CHECK(dtypeBytes(DType::bf16) == 2);
  CHECK(dtypeBytes(DType::fp32) == 4);
}

TEST_CASE("SHA-256: the vectors of FIPS 180-4 and the NIST long message") {
  CHECK(sha256Hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256Hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256Hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnop"
                  "qrstnopqrstu") == "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  CHECK(sha256Hex(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 does not depend on how the bytes are split") {
  std::string bytes;
  for (int i = 0; i < 300; ++i)
    bytes.push_back(char(i * 7));
  std::string whole = sha256Hex(bytes);
  for (size_t cut : {size_t(1), size_t(55), size_t(56), size_t(63), size_t(64), size_t(65), size_t(128), size_t(299)}) {
    Sha256 digest;
    digest.update(std::string_view(bytes).substr(0, cut)).update(std::string_view(bytes).substr(cut));
    CHECK(digest.hex() == whole);
  }
}
