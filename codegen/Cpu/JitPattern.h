// Owns the compilation of the generated functions (docs/architecture.md, section 2) for this machine
// with LLVM ORC. The IR is the one that codegen/Emit prints for the GPU. Callers need no MLIR headers.
#pragma once

#include "codegen/Cpu/JitContext.h"

#include "llvm/Support/LogicalResult.h"
#include <memory>

namespace mlir {
class ModuleOp;
}

namespace heddle {

struct PatternInfo;

// Immutable and cheap to copy; every function may be called from any number of threads.
class JitPattern {
public:
  // Compiles the module, which is left as it is; every later call is plain machine code. Fails with
  // diagnostics at the module's ops. Loads dialects into the module's context, so it must not run
  // while another thread uses that context.
  static llvm::FailureOr<JitPattern> create(mlir::ModuleOp module, const PatternInfo &info);

  const PatternInfo &info() const;

  int32_t variant(const JitContext &context) const;
  int32_t queryRate(int32_t variant) const;
  int32_t keyRate(int32_t variant, int32_t branch) const;
  int32_t keyResidue(const JitContext &context, int32_t variant, int32_t branch, int32_t tileFirst) const;
  JitKeyRange nextRange(const JitContext &context, const JitTile &tile, int32_t from) const;

  // Whether the module has functions of key tiles and the queries that they visit; those below are only called then.
  bool isTransposed() const;
  int32_t transposedKeyRate(int32_t variant) const;
  int32_t transposedQueryRate(int32_t variant, int32_t branch) const;
  int32_t transposedQueryResidue(const JitContext &context, int32_t variant, int32_t branch, int32_t tileFirst) const;
  JitKeyRange transposedNextRange(const JitContext &context, const JitTile &tile, int32_t from) const;

  bool keep(const JitContext &context, int32_t branch, int32_t q, int32_t k) const;

  // Vectorised: out[i] = 1 where (q, k + step * i) is kept, else 0, for i < count.
  void keepRow(const JitContext &context, const JitKeepLine &line, uint8_t *out) const;
  // Vectorised: out[i] = 1 where (q + step * i, k) is kept, else 0, for i < count.
  void keepColumn(const JitContext &context, const JitKeepLine &line, uint8_t *out) const;

  // What the chain makes of scale * <q, k>; the score itself in a pattern without a chain.
  float score(const JitContext &context, int32_t q, int32_t k, float score) const;
  // scores[i], that of (q + step * i, k), in place, for i < count; the branch of the line does not matter.
  void scoreColumn(const JitContext &context, const JitKeepLine &line, float *scores) const;

  // Calls pattern_score_gradient; in a module without it the derivative is 1, and lines stay as they are.
  float scoreGradient(const JitContext &context, int32_t q, int32_t k, float score) const;
  // Along queries, of scores[i] as scoreColumn has them, the derivatives there; along keys, of (q, k + step * i), the
  // scores and the derivatives.
  void scoreGradientColumn(const JitContext &context, const JitKeepLine &line, float *scores) const;
  void scoreRow(const JitContext &context, const JitKeepLine &line, float *scores) const;
  void scoreGradientRow(const JitContext &context, const JitKeepLine &line, float *scores) const;
  // Of an argument of the pattern that scores have a derivative by (appendArgumentGradients): of scores[i] as scoreColumn
  // has them, the derivatives there, and the places of the elements of a tensor that pairs read.
  bool hasArgumentGradient(int argument) const;
  void argumentGradientColumn(const JitContext &context, int argument, const JitKeepLine &line, float *scores) const;
  void argumentPlaceColumn(const JitContext &context, int argument, const JitKeepLine &line, int64_t *places) const;
  // The score of the key without a value; -infinity in a pattern without one.
  float sink(const JitContext &context) const;

private:
  struct Code;
  explicit JitPattern(std::shared_ptr<const Code> code) : code(std::move(code)) {}
  std::shared_ptr<const Code> code;
};

} // namespace heddle
