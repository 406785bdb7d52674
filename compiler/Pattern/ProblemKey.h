//===- ProblemKey.h - which tuned kernel a problem asks for -----*- C++ -*-===//
// Owns the way from concrete sizes to the problem and the bucket that winners are filed under. Buckets count tiles of
// 128 x 128, so that they do not depend on a configuration.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Pattern/PatternFile.h"
#include "codegen/Config/PatternRates.h"
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Io/OperandTensor.h"
#include "runtime/Core/KernelRecord.h"

namespace heddle {

/// One call. Lengths >= 0, the counts >= 1; heads is a multiple of kvHeads.
struct ProblemShape {
  int64_t batch = 1, heads = 1, kvHeads = 1;
  int64_t seqlenQ = 0, seqlenK = 0;
  int64_t qOrigin = 0; ///< used by patterns whose origin is given per call
  int64_t kOrigin = 0;
  std::vector<int64_t> parameters; ///< PatternFile::bindParameters, then lengths of tensors by bindOperands
  Operands operands = {};          ///< bindOperands; empty, or with empty places, where nobody reads them
};

/// Of one call on these tensors; without parameters and operands.
ProblemShape shapeOf(const AttentionSizes &sizes);

/// What the analysis reads of tensors: those of integers.
attn::TensorData tensorDataOf(const Operands &operands);

/// The position of query 0: where the pattern says, or that of the shape if it is given per call.
int64_t queryOrigin(attn::PatternOp pattern, const ProblemShape &shape);

/// The sizes as the analysis takes them, with query 0 where the pattern's q_origin says and the tensors of the shape.
attn::ProblemSizes sizesOf(const PatternFile &file, const ProblemShape &shape);
attn::ProblemSizes sizesOf(QOriginRule rule, const ProblemShape &shape);

/// invalidArgument: a size or position out of range, heads not a multiple of kvHeads.
Status checkShape(const PatternFile &file, const ProblemShape &shape);

/// Status that names the first tensor that a mask reads and `sizes` lacks, and the option that gives it.
Status checkMaskTensors(const PatternFile &file, const attn::ProblemSizes &sizes);

/// The bucket on a GPU of `smCount` SMs, whatever tensors hold. The shape passed checkShape.
ProblemBucket problemBucket(const PatternFile &file, const ProblemShape &shape, int64_t smCount);

/// What times of this call are of. Of tensors, those of integers count: they say what is kept.
ExactProblem exactProblem(const ProblemShape &shape);

/// The whole key.
WinnerKey winnerKey(const PatternFile &file, const ProblemShape &shape, const KernelFamily &family,
                    const DeviceIdentity &device);

} // namespace heddle
