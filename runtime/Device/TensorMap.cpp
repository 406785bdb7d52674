#include "runtime/Device/LoadedKernel.h"

#include <cstring>

namespace heddle {
namespace {

constexpr uint64_t kStrideStep = 16, kStrideLimit = uint64_t(1) << 40; // bytes
constexpr uint64_t kMaxDim = uint64_t(1) << 32;
constexpr uint32_t kMaxBox = 256, kMaxStep = 8;

// The values of a tensor map as the driver takes them.
struct MapValues {
  uint32_t rank = 0;
  uintptr_t base = 0;
  uint64_t dims[5] = {}, strides[4] = {};
  uint32_t box[5] = {}, steps[5] = {1, 1, 1, 1, 1};
};

Status evaluateMap(const TensorMapSpec &spec, const CallInputs &inputs, const Kind &kind, MapValues &values) {
  const LaunchSymbols &symbols = inputs.symbols;
  HEDDLE_ASSIGN(int64_t offset, spec.offsetBytes.evaluate(symbols));
  values.base = reinterpret_cast<uintptr_t>(inputs.mapBase(spec.source, kind)) + uintptr_t(offset);
  values.rank = uint32_t(spec.dims.size());
  for (size_t i = 0; i < spec.dims.size(); ++i) {
    HEDDLE_ASSIGN(int64_t dim, spec.dims[i].evaluate(symbols));
    HEDDLE_ASSIGN(int64_t box, spec.box[i].evaluate(symbols));
    values.dims[i] = uint64_t(dim);
    values.box[i] = uint32_t(box);
    if (!spec.elementStride.empty()) {
      HEDDLE_ASSIGN(int64_t step, spec.elementStride[i].evaluate(symbols));
      values.steps[i] = uint32_t(step);
    }
    if (i > 0) {
      HEDDLE_ASSIGN(int64_t stride, spec.strideBytes[i - 1].evaluate(symbols));
      values.strides[i - 1] = dim == 1 ? kStrideStep : uint64_t(stride);
    }
  }
  return {};
}

int mapSwizzle(int bytes) {
  return bytes == 128  ? cuda::kTensorMapSwizzle128
         : bytes == 64 ? cuda::kTensorMapSwizzle64
         : bytes == 32 ? cuda::kTensorMapSwizzle32
                       : cuda::kTensorMapSwizzleNone;
}

template <class T> std::string listed(const T *values, uint32_t count) {
  std::string text;
  for (uint32_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::to_string(int64_t(values[i]));
  return "(" + text + ")";
}

// The first limit that the values break; empty if they break none that is known.
std::string brokenLimit(const TensorMapSpec &spec, const MapValues &values) {
  auto at = [](const char *what, uint32_t i) { return std::string(what) + " " + std::to_string(i); };
  for (uint32_t i = 0; i < values.rank; ++i) {
    if (values.dims[i] < 1 || values.dims[i] > kMaxDim)
      return at("dimension", i) + " must be 1 to 2^32";
    if (i > 0 && (values.strides[i - 1] % kStrideStep != 0 || values.strides[i - 1] >= kStrideLimit))
      return "the stride of " + at("dimension", i) + " must be a multiple of 16 bytes below 2^40";
    if (values.box[i] < 1 || values.box[i] > kMaxBox)
      return at("box size", i) + " must be 1 to 256";
    if (values.steps[i] < 1 || values.steps[i] > kMaxStep)
      return at("step", i) + " must be 1 to 8";
  }
  if (values.base % 16 != 0 || values.base == 0)
    return "the address must be a multiple of 16 and not null";
  if (spec.swizzleBytes > 0 && values.box[0] * dtypeBytes(spec.dtype) > spec.swizzleBytes)
    return "a row of the box must fit the swizzle of " + std::to_string(spec.swizzleBytes) + " bytes";
  return {};
}

Status refusal(const Status &failure, const TensorMapSpec &spec, const MapValues &values) {
  const std::string limit = brokenLimit(spec, values);
  return {failure.code(), failure.message() + "; rank " + std::to_string(values.rank) + ", dims " +
                              listed(values.dims, values.rank) + ", strides " +
                              listed(values.strides, values.rank - 1) + " bytes, box " +
                              listed(values.box, values.rank) + ", steps " + listed(values.steps, values.rank) +
                              (limit.empty() ? "" : ": " + limit)};
}

} // namespace

Status encodeTensorMap(const LoadedKernel &kernel, const CallInputs &inputs, const TensorMapSpec &spec,
                       unsigned char *slot) {
  const Driver &driver = *kernel.device.state()->driver;
  MapValues values;
  HEDDLE_TRY(evaluateMap(spec, inputs, kernel.needs.shape.kind, values));
  cuda::TensorMap map;
  cuda::Code code = driver.tensorMapEncodeTiled(
      &map, spec.isTf32 ? cuda::kTensorMapTf32 : traitsOf(spec.dtype).tensorMapType, values.rank,
      reinterpret_cast<void *>(values.base), values.dims, values.strides, values.box, values.steps,
      cuda::kTensorMapInterleaveNone, mapSwizzle(spec.swizzleBytes), cuda::kTensorMapL2Promotion256,
      cuda::kTensorMapFillZero);
  if (code != cuda::kSuccess)
    return refusal(driver.check(code, ("launch: tensor map of " + spec.source.str()).c_str(), "cuTensorMapEncodeTiled"),
                   spec, values);
  std::memcpy(slot, &map, sizeof(map));
  return {};
}

} // namespace heddle
