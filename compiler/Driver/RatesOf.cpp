//===- RatesOf.cpp - what an analysis fixes for kernels -------------------===//
#include "compiler/Driver/RatesOf.h"
#include "dialect/Analysis/Grain.h"

namespace heddle {

QOriginRule originRule(attn::Origin origin) {
  switch (origin) {
  case attn::Origin::start:
    return QOriginRule::start;
  case attn::Origin::end:
    return QOriginRule::end;
  case attn::Origin::given:
    return QOriginRule::given;
  }
  return QOriginRule::given;
}

std::vector<VariantRates> ratesOf(const attn::PatternAnalysis &analysis) {
  std::vector<VariantRates> variants;
  for (const attn::Variant &variant : analysis.variants) {
    VariantRates &rates = variants.emplace_back();
    rates.queryRate = variant.forward.rowRate;
    rates.keyRates.clear();
    for (const attn::BranchRanges &branch : variant.forward.branches)
      rates.keyRates.push_back(branch.columnRate);
  }
  return variants;
}

PassRates passRatesOf(const attn::PatternAnalysis &analysis) { return {ratesOf(analysis), attn::grainOf(analysis)}; }

} // namespace heddle
