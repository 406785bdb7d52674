// The tensors that a pattern reads, from the parameter block to its functions. A pattern without any says nothing of
// them, and nothing here then adds to the block or to a kernel. Every parameter block begins with them, and knows the
// pattern by them.
#pragma once

namespace heddle {

template <class> using Always = void;

template <class P, class = void> struct OperandsOf {
  using Pattern = P;
  static constexpr int kCount = 0;
  DEV static void bind(typename P::Context &, const OperandsOf &) {}
};

// First in the parameter block: one pointer for each tensor, in the order of the pattern's arguments.
template <class P> struct OperandsOf<P, Always<decltype(P::kOperandCount)>> {
  using Pattern = P;
  static constexpr int kCount = P::kOperandCount;
  const void *operand[kCount];
  DEV static void bind(typename P::Context &context, const OperandsOf &operands) {
    P::bindOperands(context, operands.operand);
  }
};

} // namespace heddle
