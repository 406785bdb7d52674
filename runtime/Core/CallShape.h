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

// What a call may give up for speed. exact: nothing. tf32, of fp32: products are of operands rounded to that, which has 11
// digits. fast, of e4m3: weights come from the bits of the scores, not from exponentials, and lse from these weights.
enum class Precision : uint8_t { exact, tf32, fast };
constexpr Precision kPrecisions[] = {Precision::exact, Precision::tf32, Precision::fast};

// The type of q that has a choice of it.
constexpr DType elementOf(Precision precision) { return precision == Precision::fast ? DType::e4m3 : DType::fp32; }

// Calls that give no lse have it unless they say otherwise: it is sooner, and out is as close.
constexpr bool isUsualWithoutLse(Precision precision) { return precision == Precision::fast; }

// "exact", "tf32" or "fast"; nothing for any other text.
const char *precisionName(Precision precision);
std::optional<Precision> parsePrecision(std::string_view name);

// How many rows of q, or of k, of a head a scale may be that of. Rows of v, whose weights are rounded against one scale,
// are scaled as a head.
constexpr int64_t kScaleRows[] = {64, 128};

// Which of these a kernel can mix, it says itself.
struct CallElements {
  DType q = kDefaultDType, k = kDefaultDType, v = kDefaultDType, out = kDefaultDType;
  Precision precision = Precision::exact;
  int64_t scaleRows = 0; // of q and k, that share a scale; 0: all of a head

  CallElements() = default;
  explicit CallElements(DType inputs) : CallElements(inputs, outOf(inputs)) {}
  CallElements(DType inputs, DType out, Precision precision = Precision::exact)
      : q(inputs), k(inputs), v(inputs), out(out), precision(precision) {}

  // Of out, where nobody asks for another: what is scaled has not the digits of a result.
  static DType outOf(DType inputs) { return traitsOf(inputs).isScaled() ? kDefaultDType : inputs; }
  // With k and v of another type.
  CallElements withKeys(DType keys) const {
    CallElements elements = *this;
    elements.k = elements.v = keys;
    return elements;
  }
  CallElements withScaleRows(int64_t rows) const {
    CallElements elements = *this;
    elements.scaleRows = rows;
    return elements;
  }
  // Scales of a head of so many rows of q or k.
  int64_t scaleBlocks(int64_t rows) const { return scaleRows ? (rows + scaleRows - 1) / scaleRows : 1; }
  bool areAlike() const { return k == q && v == q; }
  // k and v are what q has no scales for: a cache of keys in fewer bits.
  bool hasScaledKeys() const { return traitsOf(k).isScaled() && v == k && traitsOf(q).isPacked(); }

  DType of(RoleElement element) const {
    const DType elements[] = {q, k, v, out, kAccumulator, DType::i32, DType::e4m3, kAccumulator};
    return elements[int(element)];
  }
};

// unsupported: k and v of another type than q, unless `takesScaledKeys` and they hasScaledKeys(); a precision that q
// has no choice of; out that is neither outOf(q) nor fp32 nor, where q is scaled, of two elements in a register.
Status checkElements(const CallElements &elements, bool takesScaledKeys);
// unsupported: gradients of elements that are scaled.
Status checkGradientElements(const Kind &kind, const CallElements &elements);
// unsupported: scaleRows that are none of kScaleRows, of a kind that has no such scales, or of elements without scales.
Status checkScaleRows(const Kind &kind, const CallElements &elements);
// unsupported: key-major values that are read beside elements other than those of bytes, which alone are multiplied so.
Status checkKeyMajor(const Kind &kind, const CallElements &elements);

struct CallShape {
  Kind kind = {};
  CallElements elements = {};
  int64_t headDim = 64, valueDim = 64;

  // v of bytes lies row by row, so kernels turn it over for their products: tile by tile, or all of it before, which costs
  // short calls more than it gains.
  bool hasValuesToTurn() const {
    return kind.base == KindBase::forward && !kind.hasKeyMajorValues && traitsOf(elements.q).isScaled() &&
           elements.areAlike();
  }
};

// "backward_of_0_3_fp32_out": the text of a kind, and the type of out where it is not CallElements::outOf(q): fp32, which
// a further launch continues from, or what e4m3 is to give; "decode_e4m3_kv": likewise the type of k and v, where it is not
// that of q; "forward_tf32", "forward_fast": and of what precision;
// "forward_scale_rows_64": and how many rows of q and k share a scale, if these are not all of a head.
struct KindText {
  Kind kind = {};
  std::optional<DType> out = {}, keys = {};
  Precision precision = Precision::exact;
  int64_t scaleRows = 0;

  // The one text of calls of this shape: what is as usual is not said.
  static KindText of(const Kind &kind, const CallElements &elements);
  // Of calls with q of this type.
  CallElements elements(DType q) const;
  std::string str() const;
  // unsupported, as of Kind::parse.
  static Result<KindText> parse(std::string_view text);
};

} // namespace heddle
