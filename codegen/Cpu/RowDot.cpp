// The sum over the value dimension of out * d_out, a number for each row: what a backward pass begins with.
#include "codegen/Cpu/CpuKinds.h"
#include "runtime/Core/ElementConvert.h"
#include "runtime/Core/ParallelFor.h"

#include <numeric>
#include <vector>

namespace heddle {

Status rowDotOnCpu(const CpuCall &call) {
  const void *out = call.as<void>(Role::out), *dOut = call.as<void>(Role::dOut);
  const CpuStrides outStride = call.stridesOf(Role::out), dOutStride = call.stridesOf(Role::dOut);
  float *delta = call.as<float>(Role::delta);
  const int64_t rows = call.seqlenQ, heads = call.heads, pairs = call.batch * heads;
  parallelFor(pairs, threadCountFor(pairs, call.threads), [&](int, int64_t pair) {
    std::vector<float> a(call.valueDim), b(call.valueDim);
    for (int64_t row = 0; row < rows; ++row) {
      const auto at = [&](const CpuStrides &stride) {
        return pair / heads * stride[0] + row * stride[1] + pair % heads * stride[2];
      };
      loadElements(call.elements.out, out, at(outStride), call.valueDim, a.data());
      loadElements(call.elements.out, dOut, at(dOutStride), call.valueDim, b.data());
      delta[pair * rows + row] = std::inner_product(a.begin(), a.end(), b.begin(), 0.0f);
    }
  });
  return {};
}

} // namespace heddle
