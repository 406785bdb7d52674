// The tensors that a pattern reads, from the parameter block to its functions. A pattern without any says nothing of
// them, and nothing here then adds to the block or to a kernel.
#pragma once

namespace heddle {

template <class> using Always = void;

template <class P, class = void> struct OperandsOf {
  static constexpr int kCount = 0;
  DEV static void bind(PatternContext &, const OperandsOf &) {}
};

// First in the parameter block: one pointer for each tensor, in the order of the pattern's arguments.
template <class P> struct OperandsOf<P, Always<decltype(P::kOperandCount)>> {
  static constexpr int kCount = P::kOperandCount;
  const void *operand[kCount];
  DEV static void bind(PatternContext &context, const OperandsOf &operands) {
    P::bindOperands(context, operands.operand);
  }
};

using PatternOperands = OperandsOf<Pattern>;

} // namespace heddle
