//===- parse_count_test.cpp - whole numbers as people write them -------------===//
#include "runtime/Core/ParseCount.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <utility>

using namespace heddle;

TEST_CASE("letters are binary multiples, in either case, and a caret is a power") {
  const std::pair<const char *, int64_t> known[] = {
      {"0", 0},        {"8192", 8192},           {"-4", -4},      {"8k", 8192},
      {"8K", 8192},    {"64K", 65536},           {"1M", 1 << 20}, {"1m", 1 << 20},
      {"1G", 1 << 30}, {"2^20", 1 << 20},        {"10^3", 1000},  {"2^0", 1},
      {"-1k", -1024},  {"-2^10", -1024},         {"1.5k", 1536},  {"0.5M", 1 << 19},
      {"1.25k", 1280}, {"1T", int64_t(1) << 40}, {"007", 7},      {"2^62", int64_t(1) << 62},
      {"1.500k", 1536}};
  for (const auto &one : known) {
    CAPTURE(one.first);
    const auto &[text, value] = one;
    REQUIRE(parseCount(text));
    CHECK(*parseCount(text) == value);
  }
}

TEST_CASE("what is no number, not whole or beyond 64 bits is none") {
  for (const char *text : {"",         "-",
                           "k",        "8q",
                           "8kk",      "8 k",
                           " 8",       "8 ",
                           "+8",       "1.5",
                           "1.3k",     "1.k",
                           ".5k",      "2^",
                           "^2",       "2^63",
                           "2^20k",    "2^-1",
                           "2^2^2",    "--1",
                           "0x10",     "1e6",
                           "1,024",    "9223372036854775808",
                           "9000000T", "1.0000000000000000000k",
                           "8192.0"}) {
    CAPTURE(text);
    CHECK_FALSE(parseCount(text));
  }
}

TEST_CASE("the largest numbers are exact") {
  CHECK(parseCount("9223372036854775807") == std::numeric_limits<int64_t>::max());
  CHECK(parseCount("8388607T") == int64_t(8388607) << 40);
  CHECK_FALSE(parseCount("8388608T"));
}
