// Owns the way from concrete sizes to the problem and the bucket that winners are filed under. Buckets count tiles of
// 128 x 128, so that they do not depend on a configuration.
#pragma once

#include "compiler/Pattern/PatternFile.h"
#include "codegen/Config/PatternRates.h"
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Io/OperandTensor.h"
#include "dialect/IR/Operands.h"
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
  int64_t sequences = 0;           ///< of kind decode; else 0

  /// That tensors of the pattern are of: queries in rows of several sequences are a batch of one.
  int64_t batchOfTensors() const { return sequences ? sequences : batch; }
};

/// The shape of the gradient of an argument of the pattern: that of the tensor, one element of a number.
std::vector<int64_t> gradientShape(const ProblemShape &shape, unsigned argument);

/// Numbers of the arguments of these names, ascending, whose gradients a call of the kind gives too. invalidArgument: it
/// gives none, or neither scores nor sinks of the pattern have such a derivative.
Result<std::vector<int64_t>> gradientArguments(const PatternFile &file, const std::vector<std::string> &names,
                                               const Kind &kind);

/// The shape of one call on these tensors, without parameters and operands.
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

/// The bucket on a GPU of `smCount` SMs, whatever tensors hold. The shape passed checkShape. `call`: what else tells
/// buckets of rows apart.
ProblemBucket problemBucket(const PatternFile &file, const ProblemShape &shape, int64_t smCount,
                            const CallShape &call = {});

/// What times of this call are of. Of tensors, those of integers count: they say what is kept.
ExactProblem exactProblem(const ProblemShape &shape);

/// The whole key.
WinnerKey winnerKey(const PatternFile &file, const ProblemShape &shape, const KernelFamily &family,
                    const DeviceIdentity &device);

// Owns where the tensors that a pattern reads come from (files, or values made for tests) and the check that each fits
// the pattern and the sizes of the call: element type, extents, and what the ops that read it say of its integers.

struct OperandSources {
  std::vector<std::string> assignments; ///< "NAME=FILE:TENSOR", or "NAME=FILE" for the tensor NAME of it
  /// a tensor file in which a tensor without an assignment may be, under its name; or empty
  std::string inputs = {};
  /// What becomes of a tensor that nobody gives: an error that says how to give it, nothing, values for tests, or these
  /// for tensors that masks read and nothing for others.
  enum class Missing { refuse, leaveOut, make, makeForMasks } missing = Missing::refuse;
  uint64_t seed = 1; ///< of the values that are made
};

/// A tensor that was made, and the op of the pattern that reads it: "documents", "csr".
struct MadeOperand {
  std::string name, reader;
};

/// The FILE of an assignment, "" if it is none.
std::string fileOfAssignment(const std::string &assignment);

/// invalidArgument: the pattern reads no tensor of a name that is assigned to, or an assignment names no file.
Status checkOperandNames(const PatternFile &file, const std::vector<std::string> &assignments);

/// Fills shape.operands, and the lengths of tensors in shape.parameters. invalidArgument and the failures of tensor
/// files name the tensor, what was expected and what was found. A pattern without tensors takes no assignments. `made`
/// gets those that were made.
Status bindOperands(const PatternFile &file, const OperandSources &sources, ProblemShape &shape,
                    std::vector<MadeOperand> *made = nullptr);

/// What the ops that read tensors of integers say of these, where all that an op reads are there.
Status checkIntegers(const PatternFile &file, const attn::TensorCall &call);

/// The same for tensors that the caller has, by argument of the pattern; empty places are left out.
Status checkOperands(const PatternFile &file, const Operands &operands, ProblemShape &shape);

} // namespace heddle
