//===- KernelOnHost.h - a kernel of a pattern on the host -------*- C++ -*-===//
// Owns the way from a pattern and a configuration to a kernel that runs without a GPU (HostLaunch.h), and from a call's
// tensors to what the kernel's plan asks for.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_KERNELONHOST_H
#define HEDDLE_TESTS_UNIT_SUPPORT_KERNELONHOST_H

#include "support/Places.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/PatternRates.h"
#include "codegen/Nvrtc/KernelSource.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/PreparedPattern.h"
#include "support/FirstSource.h"
#include "support/GradientCall.h"
#include "support/HostLaunch.h"

#include <cmath>

namespace heddle::test {

inline constexpr const char *kHopper = "sm_90a"; // here by the skeleton of its own

/// What is compiled: a pattern of the library, or its text, and fields of its configuration.
struct Kernel {
  std::string pattern;
  int64_t headDim = 64, valueDim = 64;
  DType dtype = DType::bf16;
  std::string changes = "";
  const char *arch = "sm_80";
  Kind kind = kBackward;
  bool ofArguments = false; ///< all that have gradients
  Precision precision = Precision::exact;
  std::optional<DType> keys = {}; ///< of k and v; nothing: dtype
  std::optional<DType> out = {};  ///< nothing: dtype, of forward kernels fp32
  int64_t scaleRows = 0;          ///< CallElements
};

inline std::unique_ptr<PatternFile> fileOf(const Kernel &kernel) {
  const bool isText = kernel.pattern.find('\n') != std::string::npos;
  return isText ? parsed(kernel.pattern) : loaded(test::places().patterns + "/" + kernel.pattern + ".mlir");
}

inline std::unique_ptr<HostKernel> compiled(const Kernel &kernel, const PatternFile &file) {
  auto prepared = preparePattern(file, PassFunctions::ofDefaults, kernel.kind.walk());
  REQUIRE_MESSAGE(prepared.isOk(), prepared.status().message());
  KernelShape shape;
  shape.kind = kernel.kind;
  shape.arch = *findGpuArch(kernel.arch);
  shape.headDim = kernel.headDim;
  shape.valueDim = kernel.valueDim;
  // Out of forward kernels is fp32, so that others continue from it.
  const bool isForward = kernel.kind.base == KindBase::forward;
  const DType out = kernel.out.value_or(isForward ? DType::fp32 : kernel.dtype);
  shape.elements = CallElements(kernel.dtype, out, kernel.precision)
                       .withKeys(kernel.keys.value_or(kernel.dtype))
                       .withScaleRows(kernel.scaleRows);
  const bool isOfHopper = std::string(kernel.arch) == kHopper;
  const std::string direction = isForward                ? std::string("_forward")
                                : kernel.kind.hasPages() ? "_" + kernel.kind.name()
                                                         : "_backward";
  const std::string changes =
      std::string("skeleton=") + (isOfHopper ? "sm90" : "portable") + direction + kernel.changes;
  if (kernel.ofArguments)
    for (const GradientSlot &slot : prepared->rates->gradients)
      shape.kind.gradientsOf.push_back(slot.argument);
  const KernelRequest request = makeRequest(*prepared, shape);
  auto config = parseConfig(request, changes);
  REQUIRE_MESSAGE(config.isOk(), config.status().message());
  auto source = firstSource(*prepared, request, *config);
  REQUIRE_MESSAGE(source.isOk(), source.status().message());
  auto skeleton = validateConfig(request, *config);
  REQUIRE(skeleton.isOk());
  return std::make_unique<HostKernel>(source->text, (*skeleton)->planCall(request, *config));
}

/// `ofArguments`: where gradients of call.arguments() go.
inline HostCall hostCall(const Call &call, RoleTensors &results, const std::vector<HostTensor> &ofArguments) {
  const AttentionSizes &s = call.inputs.sizes;
  const attn::ProblemSizes positions = sizesOf(*call.file, call.shape);
  HostCall host;
  host.scaleLog2 = float(call.scale / std::log(2.0));
  const std::pair<LaunchSymbol, int64_t> sizes[] = {{LaunchSymbol::batch, s.batch},
                                                    {LaunchSymbol::heads, s.heads},
                                                    {LaunchSymbol::kvHeads, s.kvHeads},
                                                    {LaunchSymbol::seqlenQ, s.seqlenQ},
                                                    {LaunchSymbol::seqlenK, s.seqlenK},
                                                    {LaunchSymbol::headDim, s.headDim},
                                                    {LaunchSymbol::valueDim, s.valueDim},
                                                    {LaunchSymbol::qOrigin, positions.qOrigin},
                                                    {LaunchSymbol::kOrigin, positions.kOrigin},
                                                    {LaunchSymbol::smCount, 132}};
  for (const auto &[symbol, value] : sizes)
    host.symbols[symbol] = value;
  host.symbols.params = call.shape.parameters.data();
  host.symbols.paramCount = int64_t(call.shape.parameters.size());
  const auto tensorOf = [&call, &results](Role role) -> HostTensor & {
    return results.isGiven(role) ? results.of(role) : const_cast<AttentionInputs &>(call.inputs).of(role);
  };
  for (const KindRole &role : call.inputs.kind.roles()) {
    const std::vector<int64_t> &shape = tensorOf(role.role).shape;
    if (shape.size() != 4)
      continue;
    host.symbols[strideOf(role.role, StrideDim::batch)] = shape[1] * shape[2] * shape[3];
    host.symbols[strideOf(role.role, StrideDim::row)] = shape[2] * shape[3];
    host.symbols[strideOf(role.role, StrideDim::head)] = shape[3];
  }
  host.address = [&call, &ofArguments, tensorOf](const PointerSource &source) -> const void * {
    if (source.kind == PointerSource::Kind::gradient) {
      const std::vector<int64_t> arguments = call.arguments();
      const auto found = std::find(arguments.begin(), arguments.end(), source.index);
      return ofArguments[size_t(found - arguments.begin())].data.data();
    }
    if (source.kind == PointerSource::Kind::operand)
      return call.shape.operands[size_t(source.index)].address();
    const HostTensor &tensor = tensorOf(Role(source.index));
    return tensor.shape.empty() ? nullptr : tensor.data.data();
  };
  return host;
}

inline AttentionSizes sizesOf(int64_t seqlenQ, int64_t seqlenK, int64_t heads, int64_t kvHeads, int64_t batch = 1) {
  AttentionSizes sizes;
  sizes.batch = batch, sizes.heads = heads, sizes.kvHeads = kvHeads;
  sizes.seqlenQ = seqlenQ, sizes.seqlenK = seqlenK;
  return sizes;
}

/// `count` keys from `first` on, of a tensor of one batch.
inline HostTensor keysOf(const HostTensor &all, int64_t first, int64_t count) {
  HostTensor some = HostTensor::zeros(all.dtype, {1, count, all.shape[2], all.shape[3]});
  const size_t row = all.data.size() / size_t(all.shape[1]);
  std::copy_n(all.data.begin() + first * row, count * row, some.data.begin());
  return some;
}

/// `whole` with `count` of its keys from `first` on.
inline Call withKeys(const Call &whole, int64_t first, int64_t count) {
  Call call = whole;
  call.shape.kOrigin = first;
  call.shape.seqlenK = call.inputs.sizes.seqlenK = count;
  for (Role role : {Role::k, Role::v})
    call.inputs.of(role) = keysOf(whole.inputs.of(role), first, count);
  return call;
}

/// What a forward kernel writes, in fp32; what it does not write stays NaN.
inline RoleTensors forwardResults(const HostKernel &kernel, const Call &call,
                                  BlockOrder order = BlockOrder::ascending) {
  RoleTensors results = resultsBefore(call.inputs, DType::fp32);
  for (Role role : {Role::out, Role::lse})
    std::fill(results.of(role).data.begin(), results.of(role).data.end(), std::byte(0xff));
  kernel.run(hostCall(call, results, {}), order);
  return results;
}

} // namespace heddle::test

#endif
