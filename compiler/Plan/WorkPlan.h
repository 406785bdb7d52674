// Owns plan files: JSON that names patterns, head dims, types, architectures and problems, and stands for all their
// combinations. `heddle pack` compiles a plan, `heddle sweep` tunes it. docs/plans.md has the format.
#pragma once

#include "compiler/Io/ServedKeys.h"
#include "runtime/Core/CallShape.h"
#include "runtime/Core/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

struct PlanHeadDims {
  int64_t head = 64, value = 64;
};

/// One problem: lengths in tokens, heads of queries and of keys and values. Where keys are served, a batch element is a
/// sequence, and seqlenK is their room().
struct PlanProblem {
  int64_t batch = 1, heads = 1, kvHeads = 1, seqlenQ = 1, seqlenK = 1;
  ServedKeys served = {};
};

/// A pattern of a file or of the library, with the sizes that problems are tuned for.
struct PlanPattern {
  std::string label;                  ///< its path or name as the plan spells it
  std::string file;                   ///< as it can be opened from here: a path, or "library:causal"
  std::string pattern;                ///< which attn.pattern of the file; empty: the only one
  std::string name;                   ///< in the database; empty: the pattern's own
  std::vector<std::string> sizes;     ///< "left=1023"
  std::vector<PlanHeadDims> headDims; ///< in the place of the plan's; empty: the plan's
  std::vector<PlanProblem> problems;  ///< likewise
  /// numbers and tensors of the pattern whose gradients kernels give too; of items of other kinds empty
  std::vector<std::string> gradientsOf;
};

/// One kernel to compile, for all sizes of the pattern.
struct PackItem {
  PlanPattern pattern;
  PlanHeadDims dims;
  DType dtype = kDefaultDType;
  Precision precision = Precision::exact;
  std::string arch;
  Kind kind = {}; ///< gradients of arguments are those of the pattern

  /// "sliding_window.mlir bf16 head_dim=64 sm_90a"; kinds other than forward are named, and precisions other than exact.
  std::string str() const;
};

/// One problem to tune.
struct TuneItem {
  PlanPattern pattern;
  PlanHeadDims dims;
  DType dtype = kDefaultDType;
  Precision precision = Precision::exact;
  PlanProblem problem;
  std::string gpu; ///< its name; empty: any
  Kind kind = {};  ///< gradients of arguments are those of the pattern

  /// "sliding_window.mlir left=1023 bf16 head_dim=64 1x16[8]x32768"; the same for equal items only.
  std::string str() const;
};

struct WorkPlan {
  std::vector<PlanPattern> patterns;  ///< at least one
  std::vector<PlanHeadDims> headDims; ///< at least one
  std::vector<DType> dtypes;          ///< at least one
  std::vector<Kind> kinds;            ///< at least one
  std::vector<Precision> precisions;  ///< of types that have them; empty: exact, and what calls that give no lse use
  std::vector<std::string> archs;     ///< may be empty
  std::vector<PlanProblem> problems;  ///< may be empty
  std::vector<std::string> gpus;      ///< names; empty: any

  /// Reads a file; paths in it count from its folder. invalidArgument names the file and the place in it.
  static Result<WorkPlan> load(const std::string &path);
  static Result<WorkPlan> parse(const std::string &text, const std::string &label, const std::string &folder);

  /// Those of a pattern: its own, or the plan's.
  const std::vector<PlanHeadDims> &headDimsOf(const PlanPattern &pattern) const {
    return pattern.headDims.empty() ? headDims : pattern.headDims;
  }
  const std::vector<PlanProblem> &problemsOf(const PlanPattern &pattern) const {
    return pattern.problems.empty() ? problems : pattern.problems;
  }

  std::vector<Precision> precisionsOf(const Kind &kind, DType dtype) const;

  /// All combinations, the last list of the plan fastest; equal ones once. Kinds that have sequences go with problems
  /// that say how many keys these have, and others with others.
  std::vector<PackItem> packItems() const;
  std::vector<TuneItem> tuneItems() const;
};

} // namespace heddle
