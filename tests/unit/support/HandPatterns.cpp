//===- HandPatterns.cpp - pattern modules written by hand -------------------===//
// Puts each pattern together from the texts of HandPatternTexts.h and its rule in C++.
#include "support/HandPatterns.h"
#include "codegen/Emit/PatternInfo.h"
#include "support/HandPatternTexts.h"

namespace heddle::test {
namespace {

std::string replaceAll(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

HandPattern makePattern(PatternInfo info, std::vector<const char *> parts, KeepRule keeps,
                        std::vector<int32_t> params = {}) {
  std::string module;
  for (const char *part : parts)
    module += part;
  std::vector<std::string> names = {"batch", "head", "heads", "seqlen_q", "seqlen_k", "q_origin", "k_origin"};
  for (int i = 0; i < info.paramCount; ++i)
    names.push_back("param_" + std::to_string(i));
  std::string declared, passed, types;
  for (const std::string &name : names) {
    const char *comma = declared.empty() ? "" : ", ";
    declared += comma + ("%" + name) + ": i32";
    passed += comma + ("%" + name);
    types += comma + std::string("i32");
  }
  module = replaceAll(replaceAll(replaceAll(module, "CTX", declared), "ARGS", passed), "TYPES", types);
  return {std::make_shared<const PatternInfo>(std::move(info)), std::move(module), std::move(keeps), std::move(params)};
}

} // namespace

const std::string &HandPattern::name() const { return info->name; }
int HandPattern::variantCount() const { return info->variantCount; }
int HandPattern::branchCount() const { return info->branchCount; }

HandPattern fullPattern() {
  return makePattern({"full", 0, 1, 1}, {singleVariant, denseKeys, rangeHelper, fullBody},
                     [](const JitContext &, int, int, int) { return true; });
}

HandPattern causalPattern() {
  return makePattern({"causal", 0, 1, 1}, {singleVariant, denseKeys, rangeHelper, causalBody},
                     [](const JitContext &, int, int q, int k) { return k <= q; });
}

HandPattern windowPattern(int left, int right) {
  return makePattern(
      {"window", 2, 1, 1}, {singleVariant, denseKeys, rangeHelper, windowBody},
      [](const JitContext &c, int, int q, int k) { return k >= q - c.params[0] && k <= q + c.params[1]; },
      {left, right});
}

HandPattern dilatedPattern(int shortLength, int longLength, int rate) {
  auto modulo = [](int a, int b) { return ((a % b) + b) % b; };
  auto keeps = [=](const JitContext &c, int, int q, int k) {
    bool thinned = 2 * c.head >= c.heads;
    int length = thinned ? longLength : shortLength;
    bool sameSegment = q - modulo(q, length) == k - modulo(k, length);
    return sameSegment && (!thinned || (modulo(q, rate) == 1 && modulo(k, rate) == 1));
  };
  HandPattern pattern = makePattern({"dilated", 0, 2, 1}, {dilatedBody, rangeHelper}, keeps);
  pattern.module = replaceAll(pattern.module, "SHORT", std::to_string(shortLength));
  pattern.module = replaceAll(pattern.module, "LONG", std::to_string(longLength));
  pattern.module = replaceAll(pattern.module, "RATE_LESS_ONE", std::to_string(rate - 1));
  return pattern;
}

HandPattern twoBranchPattern() {
  auto keeps = [](const JitContext &, int branch, int q, int k) {
    return k <= q && (branch == 0 ? q - k < 4 : ((k % 4) + 4) % 4 == 1);
  };
  return makePattern({"two_branch", 0, 1, 2}, {singleVariant, twoBranchBody, rangeHelper}, keeps);
}

HandPattern scannedPattern() {
  return makePattern({"scanned", 0, 1, 1}, {singleVariant, denseKeys, scannedBody},
                     [](const JitContext &, int, int q, int k) { return (7 * k + 3 * q) % 5 < 2; });
}

std::vector<HandPattern> allHandPatterns() {
  return {fullPattern(), causalPattern(), windowPattern(5, 2), dilatedPattern(), twoBranchPattern(), scannedPattern()};
}

} // namespace heddle::test
