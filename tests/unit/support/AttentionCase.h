//===- AttentionCase.h - one CPU attention call with its oracle -------------===//
// Owns the tensors of one call: seeded inputs rounded to the element type, padded strides, NaN in
// everything that must not be read or must be overwritten; and compares the result with the oracle.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_ATTENTIONCASE_H
#define HEDDLE_TESTS_UNIT_SUPPORT_ATTENTIONCASE_H

#include "codegen/Cpu/CpuAttention.h"
#include "runtime/Core/ElementConvert.h"
#include "support/AttentionOracle.h"
#include "support/HandPatterns.h"

namespace heddle::test {

inline Result<CpuAttentionCounts> runAttention(const JitPattern &pattern, CpuCall call) {
  call.pattern = &pattern;
  return heddle::runAttention(call);
}

struct CaseShape {
  int batch = 1, heads = 2, kvHeads = 2, seqlenQ = 1, seqlenK = 1, headDim = 16, valueDim = 16;
  int qOrigin = 0, kOrigin = 0;
  DType dtype = DType::fp32;
  int padding = 0; // extra NaN elements behind every row of every tensor
};

// A padded tensor [batch, rows, heads, dim] in the element type.
class CaseTensor {
public:
  CaseTensor(DType dtype, int batch, int rows, int heads, int dim, int padding);

  CpuStrides strides() const;
  void *data() { return bytes.data(); }
  double get(int batch, int row, int head, int d) const;
  void set(int batch, int row, int head, int d, double value);
  // Dense and as the element type holds it.
  std::vector<double> dense() const;
  // True when all padding still holds NaN.
  bool paddingIsUntouched() const;

private:
  int64_t offset(int batch, int row, int head, int d) const;
  DType dtype;
  int batch, rows, heads, dim, padding;
  std::vector<uint8_t> bytes;
};

class AttentionCase {
public:
  // Inputs are uniform in [-1, 1]; the same seed gives the same numbers.
  AttentionCase(const CaseShape &shape, unsigned seed);

  // Overwrites v.
  void fillValues(double value);
  CpuCall args();
  OracleProblem problem() const;
  // Largest errors against the oracle under `pattern`; out errors are in units of the allowed error
  // (half a unit in the last place of the element type, and 2e-5 for fp32 arithmetic).
  struct Errors {
    double out = 0, lse = 0;
    bool paddingIsUntouched = true;
  };
  Errors compare(const HandPattern &pattern) const;

  CaseShape shape;
  CaseTensor q, k, v, out;
  std::vector<float> lse;
  double scale;
};

} // namespace heddle::test

#endif
