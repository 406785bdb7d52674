//===- CallShape.h - what is fixed of a call beside its pattern --------------===//
// Owns the value that a call, the kernel that is asked for, its request, its record and its measurement have in common:
// kind, element types and head dims; and the text of the first two, which kernels are filed under and asked for by.
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Core/DType.h"
#include "runtime/Core/Kinds.h"

#include <optional>
#include <string>
#include <string_view>

namespace heddle {

// How kernels multiply fp32: products of all its digits, or of operands rounded to tf32, which has 11 of them. Other
// elements have products of their own, which are exact.
enum class Precision : uint8_t { exact, tf32 };

// "exact" or "tf32"; nothing for any other text.
const char *precisionName(Precision precision);
std::optional<Precision> parsePrecision(std::string_view name);

// Which of these a kernel can mix, it says itself.
struct CallElements {
  DType q = kDefaultDType, k = kDefaultDType, v = kDefaultDType, out = kDefaultDType;
  Precision precision = Precision::exact;

  CallElements() = default;
  explicit CallElements(DType inputs) : CallElements(inputs, outOf(inputs)) {}
  CallElements(DType inputs, DType out, Precision precision = Precision::exact)
      : q(inputs), k(inputs), v(inputs), out(out), precision(precision) {}

  // Of out, where nobody asks for another: what is scaled has not the digits of a result.
  static DType outOf(DType inputs) { return traitsOf(inputs).isScaled() ? kDefaultDType : inputs; }

  DType of(RoleElement element) const {
    const DType elements[] = {q, k, v, out, kAccumulator, DType::i32, DType::e4m3};
    return elements[int(element)];
  }
};

struct CallShape {
  Kind kind = {};
  CallElements elements = {};
  int64_t headDim = 64, valueDim = 64;
};

// "backward_of_0_3_fp32_out": the text of a kind, and whether out is fp32 instead of CallElements::outOf(q), which a
// further launch continues from; "forward_tf32": and of what precision its products are.
struct KindText {
  Kind kind = {};
  bool outFloat32 = false;
  Precision precision = Precision::exact;

  // The one text of calls of this shape: out of fp32 inputs is fp32 without saying so.
  static KindText of(const Kind &kind, const CallElements &elements);
  // Of calls with these inputs.
  CallElements elements(DType inputs) const;
  std::string str() const;
  // unsupported, as of Kind::parse.
  static Result<KindText> parse(std::string_view text);
};

} // namespace heddle
