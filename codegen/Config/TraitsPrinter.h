// Owns how host numbers reach the device: `struct KernelTraits` with one `static constexpr int` per
// number or list, in the order of the calls. Names are unique; the same calls give the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

class KernelConfig;
struct KernelRequest;
class SmemLayout;

/// What products are of: a struct of codegen/Skeletons/Shared/elements.cuh, and its numbers.
struct ProductTraits {
  std::string_view deviceName;
  int64_t bytes, mmaStep, largestExponent;

  /// The elements of the request, or what it says of them.
  static ProductTraits of(const KernelRequest &request);
};

class TraitsPrinter {
public:
  TraitsPrinter() = default;
  /// Begins with what is asked for and what was chosen.
  TraitsPrinter(const KernelRequest &request, const KernelConfig &config)
      : TraitsPrinter(request, config, ProductTraits::of(request)) {}
  TraitsPrinter(const KernelRequest &request, const KernelConfig &config, const ProductTraits &product) {
    this->request(request, product);
    this->config(config);
  }

  /// Adds one constant. `name` is in device spelling (kBlockM) and new; `value` fits an int.
  void constant(std::string_view name, int64_t value);

  /// Adds `static constexpr int name[N] = {...};`. `values` is not empty.
  void array(std::string_view name, const std::vector<int64_t> &values);

  /// kHeadDim, kValueDim, the type Element with its numbers, and kOutFloat32 (0 or 1).
  void request(const KernelRequest &request, const ProductTraits &product);
  /// Every numeric field of the configuration in device spelling.
  void config(const KernelConfig &config);
  /// For every region x its offset kSmemX, its bytes per stage kSmemStageBytesX; and kSmemBytes.
  void smem(const SmemLayout &layout);
  /// The same constants of a region that the kernel has not.
  void noSmem(const std::string &region);

  /// The struct's text, ending with a newline.
  std::string str(const std::string &name = "KernelTraits") const { return "struct " + name + " {\n" + body + "};\n"; }

private:
  std::string body;
};

} // namespace heddle
