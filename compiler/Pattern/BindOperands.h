//===- BindOperands.h - tensors for one call --------------------*- C++ -*-===//
// Owns where the tensors that a pattern reads come from (files, or values made for tests) and the check that each fits
// the pattern and the sizes of the call: element type, extents, and what the ops that read it say of its integers.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Pattern/ProblemKey.h"

namespace heddle {

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

/// The same for tensors that the caller has, by argument of the pattern; empty places are left out.
Status checkOperands(const PatternFile &file, const Operands &operands, ProblemShape &shape);

} // namespace heddle
