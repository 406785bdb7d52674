#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/SmemLayout.h"

#include <cassert>
#include <limits>

namespace heddle {

void TraitsPrinter::constant(std::string_view name, int64_t value) {
  const std::string head = "  static constexpr int " + std::string(name) + " = ";
  assert(body.find(head) == std::string::npos && "a device constant is defined once");
  assert(value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max());
  body += head + std::to_string(value) + ";\n";
}

void TraitsPrinter::array(std::string_view name, const std::vector<int64_t> &values) {
  assert(!values.empty() && "an array has elements");
  std::string list;
  for (int64_t value : values)
    list += (list.empty() ? "" : ", ") + std::to_string(value);
  body += "  static constexpr int " + std::string(name) + "[" + std::to_string(values.size()) + "] = {" + list + "};\n";
}

ProductTraits ProductTraits::of(const KernelRequest &request) {
  const ElementTraits &element = request.productElement();
  const char *names[] = {element.deviceName, "Tf32", "FastE4m3"}; // by precision
  return {names[int(request.elements.precision)], element.bytes, element.mmaStep, element.largestExponent()};
}

void TraitsPrinter::request(const KernelRequest &request, const ProductTraits &product) {
  constant("kHeadDim", request.headDim);
  constant("kValueDim", request.valueDim);
  body += "  using Element = heddle::" + std::string(product.deviceName) + ";\n";
  const bool isFloat = request.elements.out == kAccumulator;
  const DType out = isFloat ? CallElements::outOf(request.elements.q) : request.elements.out;
  body += std::string("  using OutElement = heddle::") + traitsOf(out).deviceName + ";\n";
  constant("kElementBytes", product.bytes);
  constant("kMmaStep", product.mmaStep);
  constant("kLargestExponent", product.largestExponent);
  constant("kOutFloat32", isFloat);
}

void TraitsPrinter::config(const KernelConfig &config) {
  for (const auto &[name, value] : config.coordinates())
    constant(deviceConstantName(name), value);
}

void TraitsPrinter::smem(const SmemLayout &layout) {
  for (const SmemRegion &region : layout.regions()) {
    constant(deviceConstantName("smem_" + region.name), region.offsetBytes);
    constant(deviceConstantName("smem_stage_bytes_" + region.name), region.stageBytes);
  }
  constant("kSmemBytes", layout.totalBytes());
}

void TraitsPrinter::noSmem(const std::string &region) {
  constant(deviceConstantName("smem_" + region), 0);
  constant(deviceConstantName("smem_stage_bytes_" + region), 0);
}

} // namespace heddle
