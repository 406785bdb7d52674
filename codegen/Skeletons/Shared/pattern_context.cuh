// What the generated functions are told of a call and a head, from the fields of a parameter block.
#pragma once

#include "Shared/pattern_operands.cuh"
#include "Shared/repeat.cuh"

namespace heddle {

DEV int32_t ceilDiv(int32_t a, int32_t b) { return (a + b - 1) / b; }

// What the functions of a kernel's pattern, or of that of a parameter block, are told; and the block of a kernel.
template <class K> using Context = typename K::Pattern::Context;
template <class K> using ParamsOf = typename K::Params;
// Words of a pattern's arguments; a pattern without any has one all the same.
template <class Pattern> constexpr int kArgumentWords = Pattern::kParamCount > 0 ? Pattern::kParamCount : 1;

// Those of the pattern.
template <class Params> DEV void giveArguments(Context<Params> &context, const Params &p) {
  using Pattern = typename Params::Pattern;
  repeat<kArgumentWords<Pattern>>([&](int i) { context.param[i] = p.param[i]; });
  OperandsOf<Pattern>::bind(context, p);
}

template <class Params> DEV Context<Params> makeContext(const Params &p, int32_t batch, int32_t head) {
  Context<Params> context;
  context.batch = batch;
  context.head = head;
  context.heads = p.heads;
  context.seqlenQ = p.seqlenQ;
  context.seqlenK = p.seqlenK;
  context.qOrigin = p.qOrigin;
  context.kOrigin = p.kOrigin;
  giveArguments(context, p);
  return context;
}

// Nothing that follows from these values alone is kept in registers across the rounds of a loop.
template <class Pattern> DEV void keepOutOfLoops(typename Pattern::Context &context) {
  asm volatile(""
               : "+r"(context.heads), "+r"(context.seqlenQ), "+r"(context.seqlenK), "+r"(context.qOrigin),
                 "+r"(context.kOrigin));
  repeat<Pattern::kParamCount>([&](int i) { asm volatile("" : "+r"(context.param[i])); });
}

} // namespace heddle
