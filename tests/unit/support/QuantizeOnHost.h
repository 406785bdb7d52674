//===- QuantizeOnHost.h - calls of kind quantize, and their kernel ---*- C++ -*-===//
// Owns how tests make such calls, run them on the processors and by the kernel without a GPU, and compare both with the
// definition.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_QUANTIZEONHOST_H
#define HEDDLE_TESTS_UNIT_SUPPORT_QUANTIZEONHOST_H

#include "compiler/Io/RandomTensor.h"
#include "support/FirstSource.h"
#include "support/KernelOnHost.h"
#include "support/Places.h"

#include <cmath>

namespace heddle::test {

inline const Kind kQuantize = {KindBase::quantize}, kRotated = {KindBase::quantizeRotated};

inline AttentionSizes quantizedSizes(int64_t batch, int64_t rows, int64_t keys, int64_t heads, int64_t kvHeads,
                                     int64_t headDim = 64, int64_t valueDim = 64) {
  AttentionSizes sizes;
  sizes.batch = batch, sizes.seqlenQ = rows, sizes.seqlenK = keys, sizes.heads = heads, sizes.kvHeads = kvHeads;
  sizes.headDim = headDim, sizes.valueDim = valueDim;
  return sizes;
}

struct QuantizeCall {
  explicit QuantizeCall(const AttentionSizes &sizes, DType dtype = DType::bf16, int64_t scaleRows = 0) {
    auto made = randomAttentionInputs(sizes, dtype, 3, kQuantize);
    REQUIRE_MESSAGE(made.isOk(), made.status().message());
    inputs = made.take();
    inputs.setScaleRows(scaleRows);
  }

  /// What is not written stays so: a NaN, and scales of NaN.
  RoleTensors resultsBefore() const {
    RoleTensors results = heddle::resultsBefore(inputs, inputs.outDType());
    results.kMean = inputs.kMean;
    for (Role role : written())
      std::fill(results.of(role).data.begin(), results.of(role).data.end(), std::byte(0xff));
    return results;
  }

  std::vector<Role> written() const {
    std::vector<Role> roles;
    for (const KindRole &known : inputs.kind.roles())
      if (includes(known.access, Access::write) && (known.role != Role::kMean || inputs.isGiven(Role::kMean)))
        roles.push_back(known.role);
    return roles;
  }

  /// Each column of k with a mean of its own; it is to be taken away.
  void smooth() {
    HostTensor &k = inputs.k;
    for (int64_t i = 0; i < k.elements(); ++i)
      k.set(i, k.get(i) + float(i % k.shape[3] % 7) * 20 - 50);
    inputs.kMean = HostTensor::zeros(DType::fp32, inputs.sizes.shapeOf(specOf(Role::kMean)));
  }

  /// Rows of q and k.
  void rotate(uint64_t seed = 7) {
    inputs.kind = kRotated;
    inputs.rotation = randomSigns({inputs.sizes.headDim}, seed, specOf(Role::rotation).name);
  }

  RoleTensors onCpu() const {
    RoleTensors results = resultsBefore();
    CpuCall call;
    call.elements = inputs.elements();
    call.hasKeyMajorValues = inputs.kind.hasKeyMajorValues;
    for (const RoleSpec &role : inputs.given())
      call.give(role.role, inputs.of(role.role).data.data());
    for (Role role : written())
      call.give(role, results.of(role).data.data());
    setSizes(inputs.sizes, call);
    const Status status = cpuFunctionOf(inputs.kind.base)(call);
    REQUIRE_MESSAGE(status.isOk(), status.message());
    return results;
  }

  HostCall hostCall(RoleTensors &results, int64_t processors) const {
    HostCall host;
    const AttentionSizes &s = inputs.sizes;
    for (const auto &[symbol, value] : {std::pair(LaunchSymbol::batch, s.batch),
                                        {LaunchSymbol::heads, s.heads},
                                        {LaunchSymbol::kvHeads, s.kvHeads},
                                        {LaunchSymbol::seqlenQ, s.seqlenQ},
                                        {LaunchSymbol::seqlenK, s.seqlenK},
                                        {LaunchSymbol::smCount, processors}})
      host.symbols[symbol] = value;
    const auto tensorOf = [this, &results](Role role) -> const HostTensor & {
      return results.isGiven(role) ? results.of(role) : inputs.of(role);
    };
    for (const KindRole &known : inputs.kind.roles())
      if (const std::vector<int64_t> &shape = tensorOf(known.role).shape; shape.size() == 4) {
        host.symbols[strideOf(known.role, StrideDim::batch)] = shape[1] * shape[2] * shape[3];
        host.symbols[strideOf(known.role, StrideDim::row)] = shape[2] * shape[3];
        host.symbols[strideOf(known.role, StrideDim::head)] = shape[3];
      }
    host.address = [tensorOf](const PointerSource &source) -> const void * {
      const HostTensor &tensor = tensorOf(Role(source.index));
      return tensor.shape.empty() ? nullptr : tensor.data.data();
    };
    return host;
  }

  void verify(const RoleTensors &results) const {
    const auto file = loaded(test::places().patterns + "/causal.mlir");
    const oracle::KindReport report = oracle::verifyCall({file->pattern(), {}, inputs, 1}, results, 1000);
    REQUIRE(report.roles.size() == written().size());
    for (const oracle::RoleReport &role : report.roles) {
      INFO(role.name() << " batch " << role.worst.batch << " head " << role.worst.head << " row " << role.worst.row);
      CHECK(role.maxError <= role.allowedError);
    }
  }

  AttentionInputs inputs;
};

/// A NaN is one, whatever its sign.
inline bool areAlike(const HostTensor &a, const HostTensor &b) {
  for (int64_t i = 0; i < a.elements(); ++i)
    if (const float x = a.get(i), y = b.get(i);
        std::isnan(x) != std::isnan(y) || (x == x && (x != y || std::signbit(x) != std::signbit(y))))
      return false;
  return true;
}

struct QuantizeKernel {
  explicit QuantizeKernel(const std::string &changes = "", DType dtype = DType::bf16, int64_t headDim = 64,
                          int64_t valueDim = 64, const Kind &kind = kQuantize, int64_t scaleRows = 0) {
    const auto file = loaded(test::places().patterns + "/causal.mlir");
    auto prepared = preparePattern(*file, PassFunctions::ofDefaults, Walk::queries);
    REQUIRE_MESSAGE(prepared.isOk(), prepared.status().message());
    KernelShape shape;
    shape.kind = kind;
    shape.arch = *findGpuArch("sm_80");
    shape.headDim = headDim, shape.valueDim = valueDim;
    shape.elements = CallElements(dtype).withScaleRows(scaleRows);
    const KernelRequest request = makeRequest(*prepared, shape);
    auto config = parseConfig(request, "skeleton=" + Kind{kind.base}.name() + changes);
    REQUIRE_MESSAGE(config.isOk(), config.status().message());
    auto source = test::firstSource(*prepared, request, *config);
    REQUIRE_MESSAGE(source.isOk(), source.status().message());
    auto skeleton = validateConfig(request, *config);
    REQUIRE(skeleton.isOk());
    code = std::make_unique<HostKernel>(source->text, (*skeleton)->planCall(request, *config));
  }

  void check(const QuantizeCall &call, int64_t processors = 2) const {
    const RoleTensors expected = call.onCpu();
    call.verify(expected);
    for (BlockOrder order : {BlockOrder::ascending, BlockOrder::descending}) {
      const RoleTensors results = run(call, processors, order);
      for (Role role : call.written()) {
        INFO(specOf(role).name);
        CHECK(areAlike(results.of(role), expected.of(role)));
      }
    }
  }

  /// Sums of columns are not those of the processors, bit by bit.
  void checkSmoothed(const QuantizeCall &call) const {
    const RoleTensors expected = call.onCpu(), results = run(call, 2, BlockOrder::ascending);
    call.verify(expected);
    call.verify(results);
    for (Role role : {Role::quantizedQ, Role::quantizedV, Role::descaleQ, Role::descaleV})
      CHECK(areAlike(results.of(role), expected.of(role)));
    const RoleTensors again = run(call, 3, BlockOrder::descending);
    for (Role role : call.written())
      CHECK(again.of(role).data == results.of(role).data);
  }

  RoleTensors run(const QuantizeCall &call, int64_t processors, BlockOrder order) const {
    RoleTensors results = call.resultsBefore();
    code->run(call.hostCall(results, processors), order);
    return results;
  }

  std::unique_ptr<HostKernel> code;
};

} // namespace heddle::test

#endif
