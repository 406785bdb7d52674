//===- pattern_mutator.cpp - changes to pattern files -----------------------===//
// Bytes changed at random rarely parse, so half of the changes are made to lines, numbers, ops and values.
//===----------------------------------------------------------------------===//
#include "tests/fuzz/Fuzz.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

using Random = std::minstd_rand;

const char *const kNumbers[] = {"0",
                                "1",
                                "2",
                                "3",
                                "7",
                                "64",
                                "65",
                                "128",
                                "4095",
                                "65536",
                                "1048576",
                                "1073741823",
                                "1073741824",
                                "2147483646",
                                "2147483647",
                                "2147483648",
                                "4294967295",
                                "4294967296",
                                "9223372036854775807",
                                "9223372036854775808",
                                "18446744073709551616",
                                "-1",
                                "-2147483648",
                                "1.0e+38",
                                "0x7F800000",
                                "-0.0"};
const char *const kOps[] = {"attn.full",
                            "attn.causal",
                            "attn.window [7, 0]",
                            "attn.window [%left, %left]",
                            "attn.rows [1, 1]",
                            "attn.cols [2, 0]",
                            "attn.box [0, 4, 1, 9]",
                            "attn.prefix [5]",
                            "attn.stride k by 4 at 3",
                            "attn.stride q by 3 rule(modulo)",
                            "attn.and %a, %b",
                            "attn.or %a, %b",
                            "attn.not %a",
                            "attn.heads %a, %b",
                            "attn.segment %a by [64]",
                            "attn.dilate %a by 4 rule(every)",
                            "attn.dilate %a by 2 at 1",
                            "attn.dilate %a by 3 rule(group)",
                            "attn.blocks %a by [16]",
                            "attn.scaled",
                            "attn.softcap %a by 30.0",
                            "attn.alibi %a",
                            "attn.random count 3 seed 1",
                            "attn.tree %ancestors : memref<?xi64>",
                            "attn.tree %trees : memref<?x?xi64> drafts %counts : memref<?xi32>",
                            "attn.documents %a at %cu : memref<?xi32>",
                            "attn.documents %a at %cu_q, %cu_k : memref<?xi32>, memref<?xi32>",
                            "attn.csr %offsets, %indices : memref<?x?x?xi32>, memref<?xi32>"};

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size() - 1);
    lines.push_back(text.substr(begin, end - begin + 1));
    begin = end + 1;
  }
  return lines;
}

size_t below(Random &random, size_t limit) { return limit ? random() % limit : 0; }

/// The words of `text` that `starts` says begin one and that `goes` says go on.
template <class Starts, class Goes>
std::vector<std::pair<size_t, size_t>> wordsOf(const std::string &text, Starts starts, Goes goes) {
  std::vector<std::pair<size_t, size_t>> words;
  for (size_t i = 0; i < text.size(); ++i)
    if (starts(text[i])) {
      size_t end = i + 1;
      while (end < text.size() && goes(text[end]))
        ++end;
      words.push_back({i, end - i});
      i = end;
    }
  return words;
}

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isName(char c) { return isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::string withNumber(std::string text, Random &random) {
  auto numbers = wordsOf(text, isDigit, isDigit);
  if (numbers.empty())
    return text;
  auto [at, size] = numbers[below(random, numbers.size())];
  return text.replace(at, size, kNumbers[below(random, std::size(kNumbers))]);
}

std::vector<std::pair<size_t, size_t>> valuesOf(const std::string &text) {
  return wordsOf(text, [](char c) { return c == '%'; }, isName);
}

std::string withValue(std::string text, Random &random) {
  auto values = valuesOf(text);
  if (values.empty())
    return text;
  auto [at, size] = values[below(random, values.size())];
  auto [from, length] = values[below(random, values.size())];
  return text.replace(at, size, text.substr(from, length));
}

std::string withLines(const std::string &text, Random &random) {
  std::vector<std::string> lines = linesOf(text);
  if (lines.empty())
    return text;
  size_t a = below(random, lines.size()), b = below(random, lines.size());
  switch (random() % 3) {
  case 0:
    lines.insert(lines.begin() + a, lines[b]);
    break;
  case 1:
    lines.erase(lines.begin() + a);
    break;
  default:
    std::swap(lines[a], lines[b]);
  }
  std::string result;
  for (const std::string &line : lines)
    result += line;
  return result;
}

/// A new op over values that are there, with a name of its own, in front of some line.
std::string withOp(const std::string &text, Random &random) {
  std::vector<std::string> lines = linesOf(text);
  auto values = valuesOf(text);
  if (lines.empty())
    return text;
  std::string op = kOps[below(random, std::size(kOps))];
  for (const char *operand : {"%a", "%b"})
    if (size_t at = op.find(operand); at != std::string::npos && !values.empty()) {
      auto [from, length] = values[below(random, values.size())];
      op.replace(at, 2, text.substr(from, length));
    }
  const std::string name = values.empty() || random() % 4 == 0 ? "%n" + std::to_string(random() % 100)
                                                               : text.substr(values[0].first, values[0].second);
  lines.insert(lines.begin() + below(random, lines.size()), "  " + name + " = " + op + "\n");
  std::string result;
  for (const std::string &line : lines)
    result += line;
  return result;
}

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  Random random(seed | 1);
  if (random() % 2)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string text(reinterpret_cast<const char *>(data), size);
  for (int changes = 1 + random() % 3; changes > 0; --changes)
    switch (random() % 4) {
    case 0:
      text = withNumber(std::move(text), random);
      break;
    case 1:
      text = withValue(std::move(text), random);
      break;
    case 2:
      text = withLines(text, random);
      break;
    default:
      text = withOp(text, random);
    }
  size = std::min(text.size(), maxSize);
  std::memcpy(data, text.data(), size);
  return size;
}
