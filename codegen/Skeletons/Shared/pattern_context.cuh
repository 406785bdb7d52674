// What the generated functions are told of a call and a head, from the fields of a parameter block.
#pragma once

#include "Shared/pattern_operands.cuh"

namespace heddle {

DEV int32_t ceilDiv(int32_t a, int32_t b) { return (a + b - 1) / b; }

// Those of the pattern.
template <class Params> DEV void giveArguments(PatternContext &context, const Params &p) {
  constexpr int kSlots = Pattern::kParamCount > 0 ? Pattern::kParamCount : 1;
#pragma unroll
  for (int i = 0; i < kSlots; ++i)
    context.param[i] = p.param[i];
  PatternOperands::bind(context, p);
}

template <class Params> DEV PatternContext makeContext(const Params &p, int32_t batch, int32_t head) {
  PatternContext context;
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
DEV void keepOutOfLoops(PatternContext &context) {
  asm volatile(""
               : "+r"(context.heads), "+r"(context.seqlenQ), "+r"(context.seqlenK), "+r"(context.qOrigin),
                 "+r"(context.kOrigin));
#pragma unroll
  for (int i = 0; i < Pattern::kParamCount; ++i)
    asm volatile("" : "+r"(context.param[i]));
}

} // namespace heddle
