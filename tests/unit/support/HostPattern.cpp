//===- HostPattern.cpp - emitted device text run on the host ----------------===//
// A PatternContext is made of the words and the pointers of a JitContext.
#include "support/HostPattern.h"
#include "codegen/Emit/PatternInfo.h"
#include "support/HostCompiler.h"
#include "support/HostDevice.h"

namespace heddle::test {
namespace {

const char *shims = R"(
#define SHIM extern "C" __attribute__((visibility("default")))
#define DEV inline
#include "Shared/pattern_operands.cuh"
struct JitContext { int32_t words[7 + 32]; const void *operands[8]; };
struct Context : PatternContext {
  explicit Context(const JitContext *jit) {
    std::memcpy(static_cast<PatternContext *>(this), jit, sizeof(int32_t) * (7 + (Pattern::kParamCount > 0 ? Pattern::kParamCount : 1)));
    heddle::OperandsOf<Pattern> operands;
    if constexpr (heddle::OperandsOf<Pattern>::kCount > 0)
      std::memcpy(&operands, jit->operands, sizeof operands);
    heddle::OperandsOf<Pattern>::bind(*this, operands);
  }
};
SHIM int shim_variant(const JitContext *c) { return Pattern::variant(Context(c)); }
SHIM int shim_query_rate(int variant) { return Pattern::queryRate(variant); }
SHIM int shim_key_rate(int variant, int branch) { return Pattern::keyRate(variant, branch); }
SHIM int shim_key_residue(const JitContext *c, int variant, int branch, int tileFirst) {
  return Pattern::keyResidue(Context(c), variant, branch, tileFirst);
}
SHIM void shim_next_range(const JitContext *c, int variant, int branch, int tileFirst,
                          int tileLast, int blockN, int from, int *out) {
  KeyRange range = Pattern::nextRange(Context(c), variant, branch, tileFirst, tileLast, blockN, from);
  out[0] = range.begin; out[1] = range.end; out[2] = range.fullBegin; out[3] = range.fullEnd;
  out[4] = range.reach;
}
SHIM int shim_keep(const JitContext *c, int branch, int q, int k) {
  return Pattern::keep(Context(c), branch, q, k);
}

#include "Shared/lane_columns.cuh"
template <int Branch> uint32_t keptColumns(const PatternContext &c, int variant, int branch, int q, int first) {
  if (branch != Branch) {
    if constexpr (Branch + 1 < Pattern::kBranchCount) return keptColumns<Branch + 1>(c, variant, branch, q, first);
  }
  if constexpr (Pattern::kHasKeptColumns[Branch])
    return Pattern::keptColumns<heddle::LaneColumns>(c, variant, Branch, q, first);
  return 0;
}
SHIM int shim_has_kept_columns(int branch) { return Pattern::kHasKeptColumns[branch]; }
SHIM uint32_t shim_kept_columns(const JitContext *c, int variant, int branch, int q, int first) {
  return keptColumns<0>(Context(c), variant, branch, q, first);
}
template <class P> constexpr auto hasBand(int) -> decltype(P::template bandColumns<heddle::LaneColumns>(PatternContext(), 0, 0, 0, 0), true) { return true; }
template <class P> constexpr bool hasBand(...) { return false; }
template <class P> uint32_t bandColumns(const PatternContext &c, int variant, int branch, int q, int first) {
  if constexpr (hasBand<P>(0))
    return P::template bandColumns<heddle::LaneColumns>(c, variant, branch, q, first);
  return 0;
}
SHIM int shim_has_band_columns() { return hasBand<Pattern>(0); }
SHIM uint32_t shim_band_columns(const JitContext *c, int variant, int branch, int q, int first) {
  return bandColumns<Pattern>(Context(c), variant, branch, q, first);
}
SHIM float shim_score(const JitContext *c, int q, int k, float score) {
  return Pattern::score(Context(c), q, k, Pattern::scoreDocument(Context(c), q), score);
}
SHIM float shim_sink(const JitContext *c) { return Pattern::kHasSink ? Pattern::sink(Context(c)) : -__builtin_inff(); }
SHIM void shim_counts(int *out) {
  out[0] = Pattern::kVariantCount; out[1] = Pattern::kBranchCount; out[2] = Pattern::kParamCount;
  out[3] = Pattern::kHasScore;
}
)";

// After the others, for texts with a TransposedPattern.
const char *transposedShims = R"(
SHIM float shim_score_gradient(const JitContext *c, int q, int k, float score) {
  return Pattern::scoreGradient(Context(c), q, k, Pattern::scoreDocument(Context(c), q), score);
}
SHIM int shim_is_detached() { return Pattern::kIsDetached; }
SHIM int shim_transposed_key_rate(int variant) { return TransposedPattern::keyRate(variant); }
SHIM int shim_transposed_query_rate(int variant, int branch) { return TransposedPattern::queryRate(variant, branch); }
SHIM int shim_transposed_query_residue(const JitContext *c, int variant, int branch, int tileFirst) {
  return TransposedPattern::queryResidue(Context(c), variant, branch, tileFirst);
}
SHIM void shim_transposed_next_range(const JitContext *c, int variant, int branch, int tileFirst, int tileLast, int blockM, int from, int *out) {
  KeyRange range = TransposedPattern::nextRange(Context(c), variant, branch, tileFirst, tileLast, blockM, from);
  out[0] = range.begin; out[1] = range.end; out[2] = range.fullBegin; out[3] = range.fullEnd; out[4] = range.reach;
}
template <int Branch> uint32_t transposedKeptColumns(const PatternContext &c, int variant, int branch, int k, int first) {
  if (branch != Branch) {
    if constexpr (Branch + 1 < Pattern::kBranchCount) return transposedKeptColumns<Branch + 1>(c, variant, branch, k, first);
  }
  if constexpr (TransposedPattern::kHasKeptColumns[Branch])
    return TransposedPattern::keptColumns<heddle::LaneColumns>(c, variant, Branch, k, first);
  return 0;
}
SHIM int shim_has_transposed_band_columns() { return hasBand<TransposedPattern>(0); }
SHIM uint32_t shim_transposed_band_columns(const JitContext *c, int variant, int branch, int k, int first) {
  return bandColumns<TransposedPattern>(Context(c), variant, branch, k, first);
}
SHIM int shim_has_transposed_kept_columns(int branch) { return TransposedPattern::kHasKeptColumns[branch]; }
SHIM uint32_t shim_transposed_kept_columns(const JitContext *c, int variant, int branch, int k, int first) {
  return transposedKeptColumns<0>(Context(c), variant, branch, k, first);
}
)";

} // namespace

struct HostPattern::Library : HostLibrary {
  using HostLibrary::HostLibrary;

  int (*variant)(const JitContext *) = nullptr;
  int (*queryRate)(int) = nullptr;
  int (*keyRate)(int, int) = nullptr;
  int (*keyResidue)(const JitContext *, int, int, int) = nullptr;
  void (*nextRange)(const JitContext *, int, int, int, int, int, int, int *) = nullptr;
  int (*keep)(const JitContext *, int, int, int) = nullptr;
  int (*hasKeptColumns)(int) = nullptr;
  uint32_t (*keptColumns)(const JitContext *, int, int, int, int) = nullptr;
  int (*hasBandColumns)() = nullptr;
  uint32_t (*bandColumns)(const JitContext *, int, int, int, int) = nullptr;
  float (*score)(const JitContext *, int, int, float) = nullptr;
  float (*sink)(const JitContext *) = nullptr;
  void (*counts)(int *) = nullptr;
  float (*scoreGradient)(const JitContext *, int, int, float) = nullptr;
  int (*isDetached)() = nullptr;
  int (*transposedKeyRate)(int) = nullptr;
  int (*transposedQueryRate)(int, int) = nullptr;
  int (*transposedQueryResidue)(const JitContext *, int, int, int) = nullptr;
  void (*transposedNextRange)(const JitContext *, int, int, int, int, int, int, int *) = nullptr;
  int (*hasTransposedKeptColumns)(int) = nullptr;
  uint32_t (*transposedKeptColumns)(const JitContext *, int, int, int, int) = nullptr;
  int (*hasTransposedBandColumns)() = nullptr;
  uint32_t (*transposedBandColumns)(const JitContext *, int, int, int, int) = nullptr;
};

HostPattern::HostPattern(const std::string &text, const PatternInfo &info) {
  const bool isTransposed = text.find("struct TransposedPattern") != std::string::npos;
  HostText source;
  source.text = "// pattern " + info.name + kHostDevice + text + shims + (isTransposed ? transposedShims : "");
  source.flags = "-Wall -Wno-unused-function";
  source.headers["Ptx/warp.cuh"] = kHostWarp;
  source.headers["Ptx/scalar.cuh"] = kHostScalar;
  library = std::make_unique<Library>(source);
  library->find("shim_variant", library->variant);
  library->find("shim_query_rate", library->queryRate);
  library->find("shim_key_rate", library->keyRate);
  library->find("shim_key_residue", library->keyResidue);
  library->find("shim_next_range", library->nextRange);
  library->find("shim_keep", library->keep);
  library->find("shim_has_kept_columns", library->hasKeptColumns);
  library->find("shim_kept_columns", library->keptColumns);
  library->find("shim_has_band_columns", library->hasBandColumns);
  library->find("shim_band_columns", library->bandColumns);
  library->find("shim_score", library->score);
  library->find("shim_sink", library->sink);
  library->find("shim_counts", library->counts);
  if (!isTransposed)
    return;
  library->find("shim_score_gradient", library->scoreGradient);
  library->find("shim_is_detached", library->isDetached);
  library->find("shim_transposed_key_rate", library->transposedKeyRate);
  library->find("shim_transposed_query_rate", library->transposedQueryRate);
  library->find("shim_transposed_query_residue", library->transposedQueryResidue);
  library->find("shim_transposed_next_range", library->transposedNextRange);
  library->find("shim_has_transposed_kept_columns", library->hasTransposedKeptColumns);
  library->find("shim_transposed_kept_columns", library->transposedKeptColumns);
  library->find("shim_has_transposed_band_columns", library->hasTransposedBandColumns);
  library->find("shim_transposed_band_columns", library->transposedBandColumns);
}

HostPattern::~HostPattern() = default;

int HostPattern::variant(const JitContext &context) const { return library->variant(&context); }

int HostPattern::queryRate(int variant) const { return library->queryRate(variant); }

int HostPattern::keyRate(int variant, int branch) const { return library->keyRate(variant, branch); }

int HostPattern::keyResidue(const JitContext &context, int variant, int branch, int tileFirst) const {
  return library->keyResidue(&context, variant, branch, tileFirst);
}

JitKeyRange HostPattern::nextRange(const JitContext &context, const JitTile &tile, int from) const {
  int out[5];
  library->nextRange(&context, tile.variant, tile.branch, tile.first, tile.last, tile.block, from, out);
  return {out[0], out[1], out[2], out[3], out[4]};
}

bool HostPattern::keep(const JitContext &context, int branch, int q, int k) const {
  return library->keep(&context, branch, q, k) != 0;
}

bool HostPattern::hasKeptColumns(int branch) const { return library->hasKeptColumns(branch) != 0; }

uint32_t HostPattern::keptColumns(const JitContext &context, int branch, int q, int firstKey) const {
  return library->keptColumns(&context, variant(context), branch, q, firstKey);
}

bool HostPattern::hasBandColumns() const { return library->hasBandColumns() != 0; }

uint32_t HostPattern::bandColumns(const JitContext &context, int branch, int q, int firstKey) const {
  return library->bandColumns(&context, variant(context), branch, q, firstKey);
}

int HostPattern::transposedKeyRate(int variant) const { return library->transposedKeyRate(variant); }

int HostPattern::transposedQueryRate(int variant, int branch) const {
  return library->transposedQueryRate(variant, branch);
}

int HostPattern::transposedQueryResidue(const JitContext &context, int variant, int branch, int tileFirst) const {
  return library->transposedQueryResidue(&context, variant, branch, tileFirst);
}

JitKeyRange HostPattern::transposedNextRange(const JitContext &context, const JitTile &tile, int from) const {
  int out[5];
  library->transposedNextRange(&context, tile.variant, tile.branch, tile.first, tile.last, tile.block, from, out);
  return {out[0], out[1], out[2], out[3], out[4]};
}

bool HostPattern::hasTransposedBandColumns() const { return library->hasTransposedBandColumns() != 0; }

uint32_t HostPattern::transposedBandColumns(const JitContext &context, int branch, int k, int firstQuery) const {
  return library->transposedBandColumns(&context, variant(context), branch, k, firstQuery);
}

bool HostPattern::hasTransposedKeptColumns(int branch) const { return library->hasTransposedKeptColumns(branch) != 0; }

uint32_t HostPattern::transposedKeptColumns(const JitContext &context, int branch, int k, int firstQuery) const {
  return library->transposedKeptColumns(&context, variant(context), branch, k, firstQuery);
}

float HostPattern::sink(const JitContext &context) const { return library->sink(&context); }

float HostPattern::scoreGradient(const JitContext &context, int q, int k, float score) const {
  return library->scoreGradient(&context, q, k, score);
}
bool HostPattern::isDetached() const { return library->isDetached() != 0; }
float HostPattern::score(const JitContext &context, int q, int k, float score) const {
  return library->score(&context, q, k, score);
}

PatternInfo HostPattern::counts() const {
  int out[4];
  library->counts(out);
  return {"", out[2], out[0], out[1], out[3] != 0};
}

} // namespace heddle::test
