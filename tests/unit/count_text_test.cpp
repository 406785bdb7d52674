//===- count_text_test.cpp - numbers of things in words -------------------===//
#include "runtime/Core/CountText.h"

#include <cstdint>
#include <doctest/doctest.h>

using namespace heddle;

TEST_CASE("digits stand in threes") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(-1000) == "-1,000");
  CHECK(grouped(-999) == "-999");
  CHECK(grouped(1234567) == "1,234,567");
  CHECK(grouped(INT64_MIN) == "-9,223,372,036,854,775,808");
  CHECK(grouped(CountedNumber(1) << 80) == "1,208,925,819,614,629,174,706,176");
}

TEST_CASE("one thing is not many") {
  CHECK(counted(1, "head") == "1 head");
  CHECK(counted(0, "head") == "0 heads");
  CHECK(counted(2, "GPU") == "2 GPUs");
  CHECK(counted(8192, "query") == "8,192 queries");
  CHECK(counted(1, "query") == "1 query");
  CHECK(counted(3, "key") == "3 keys");
  CHECK(counted(2, "residue class") == "2 residue classes");
  CHECK(counted(2, "batch") == "2 batches");
  CHECK(nounFor(1, "entry") == "entry");
  CHECK(pluralOf("entry") == "entries");
}
