//===- RandomPattern.h - random compositions of masks -------------------------===//
// Owns a generator of attn.pattern texts over every op, with the sizes of a problem and a tile shape, and the list of
// simpler cases that a failing one is shrunk through.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_RANDOMPATTERN_H
#define HEDDLE_TESTS_UNIT_SUPPORT_RANDOMPATTERN_H

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace heddle::test {

/// A mask op with its operands.
struct MaskNode {
  enum Kind {
    Full,
    Causal,
    Window,
    Rows,
    Cols,
    Box,
    Prefix,
    StrideQ,
    StrideK,
    Random,
    Predicate,
    And,
    Or,
    Not,
    Heads,
    Segment,
    Blocks,
    Dilate
  };
  Kind kind = Full;
  int64_t a = 0, b = 0;   ///< sizes; rate and offset; form of a predicate
  int64_t c = 0, d = 0;   ///< the keys of a box
  std::string rule;       ///< offset rule; empty: at b. Of random cells not empty: per head
  bool isRuntime = false; ///< sizes are arguments of the pattern
  std::vector<MaskNode> operands;
};

struct RandomCase {
  std::vector<MaskNode> branches;
  bool isUnion = true;
  bool sharesSizes = false; ///< run-time sizes of one value are one argument, 0 is none
  int64_t heads = 1, seqlenQ = 0, seqlenK = 0, qOrigin = 0, kOrigin = 0, blockM = 1, blockN = 1;

  /// `attn.pattern @p(...) { ... }`; `parameters` receives the values of its run-time sizes. Where sizes are shared,
  /// those that it holds already are arguments too.
  std::string text(std::vector<int64_t> &parameters) const;
  /// Text and sizes, for a report.
  std::string describe() const;
};

/// Masks nest at most `depth` deep. The pattern may still break a rule of the verifier.
RandomCase randomCase(std::mt19937 &random, int depth);

/// A case whose borders tend to lie at multiples of `grain`: masks of single positions mostly come in blocks, sizes
/// known in the text are multiples of it, and position 0 is that of row and key 0.
RandomCase coarseCase(std::mt19937 &random, int depth, int64_t grain);

/// A coarse case with a list of random blocks in it, cut by a window of positions.
RandomCase bandedCase(std::mt19937 &random, int depth, int64_t grain);

/// A case whose sizes are often as large as 32 bits hold, or about where positions end; masks mostly come in blocks or
/// segments of run-time sizes.
RandomCase extremeCase(std::mt19937 &random, int depth);

/// A union of masks on lattices of rows and keys of different rates, most of them in segments of their own lengths, and of
/// some that lie on no lattice.
RandomCase latticesCase(std::mt19937 &random);

/// Cases with one thing less: an op replaced by an operand or by full, a smaller number, a shorter sequence.
std::vector<RandomCase> simplerCases(const RandomCase &failing);

} // namespace heddle::test

#endif
