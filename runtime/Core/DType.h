//===- DType.h - element types ----------------------------------------------===//
// Owns the table of elements: whatever the project knows of a type (its names and numbers elsewhere, its bytes and range,
// what kernels compute with) is a column here. A new element is a line here, its number in heddle.h, its conversion in
// ElementConvert.h, how patterns read it in dialect/IR/Operands.cpp and, where kernels compute with it, a struct of
// codegen/Skeletons/Shared/elements.cuh. Python reads the table through heddle_tables().
#pragma once

#include "runtime/Include/heddle.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// By columns:
//   the name in options, stores and JSON; in the text of a pattern; in safetensors; of PyTorch and numpy
//   heddle_dtype; bytes; DLDataTypeCode; CUtensorMapDataType; what generated functions load, a word of its bits
//   bits of the significand, the implicit one among them (0: an integer), least positive and largest number
//   elements along which one mma sums, and the struct of elements.cuh (0 and null: no kernel computes with it)
// Beyond `largest`, bf16, fp16 and fp32 round to infinity; e4m3 has none and stays at `largest`, as the OCP's saturating
// conversion does.
#define HEDDLE_ELEMENTS(ELEMENT)                                                                                       \
  ELEMENT(bf16, "bf16", "BF16", "bfloat16", HEDDLE_BF16, 2, 4, 9, "int16_t", 8, 0x1p-133, 0x1.fep127, 16, "Bf16")      \
  ELEMENT(fp16, "f16", "F16", "float16", HEDDLE_FP16, 2, 2, 6, "int16_t", 11, 0x1p-24, 0x1.ffcp15, 16, "Fp16")         \
  ELEMENT(fp32, "f32", "F32", "float32", HEDDLE_FP32, 4, 2, 7, "float", 24, 0x1p-149, 0x1.fffffep127, 8, "Fp32")       \
  ELEMENT(e4m3, "f8E4M3FN", "F8_E4M3", "float8_e4m3fn", HEDDLE_E4M3, 1, 10, 0, "int8_t", 4, 0x1p-9, 448, 32, "E4m3")   \
  ELEMENT(i32, "i32", "I32", "int32", HEDDLE_DTYPE_NONE, 4, 0, 3, "int32_t", 0, 1, INT32_MAX, 0, nullptr)              \
  ELEMENT(i64, "i64", "I64", "int64", HEDDLE_DTYPE_NONE, 8, 0, 5, "int32_t", 0, 1, double(INT64_MAX), 0, nullptr)

enum class DType : uint8_t {
#define HEDDLE_ELEMENT(identifier, ...) identifier,
  HEDDLE_ELEMENTS(HEDDLE_ELEMENT)
#undef HEDDLE_ELEMENT
};

// Of a call that names none.
inline constexpr DType kDefaultDType = DType::bf16;
// Of sums in kernels, of logs of sums, and of what another launch continues from.
inline constexpr DType kAccumulator = DType::fp32;

struct ElementTraits {
  DType dtype;
  const char *name, *mlirName, *fileName, *torchName;
  int32_t code; // HEDDLE_DTYPE_NONE: only patterns read tensors of it
  int64_t bytes;
  int dlpackCode, tensorMapType;
  const char *loadedAs;
  int significandBits;
  double least, largest;
  int64_t mmaStep;
  const char *deviceName;

  // Tensors of calls, q to d_v, may hold it.
  constexpr bool isOfCalls() const { return code != HEDDLE_DTYPE_NONE; }
  constexpr bool isReal() const { return significandBits > 0; }
  // By kernels, in q, k and v.
  constexpr bool isComputed() const { return deviceName != nullptr; }
  // Two in a register, which data sheets have the rate of matrix products of.
  constexpr bool isPacked() const { return isComputed() && bytes == 2; }
  // So few bits that a tensor comes with factors of its own (descale_q of heddle_attention_args).
  constexpr bool isScaled() const { return isComputed() && bytes == 1; }
  // Products of one warp, mma.sync, and of a warpgroup, wgmma, take it.
  constexpr bool isOfWarps() const { return isComputed() && bytes >= 2; }
  constexpr bool isOfWarpgroups() const { return isComputed() && bytes <= 2; }
  constexpr bool isKnown() const { return true; }
  // 2^n is finite.
  constexpr int64_t largestExponent() const {
    int64_t exponent = 0;
    for (double power = 2; power <= largest; power *= 2)
      ++exponent;
    return exponent;
  }
};

inline constexpr ElementTraits kElements[] = {
#define HEDDLE_ELEMENT(identifier, ...) {DType::identifier, #identifier, __VA_ARGS__},
    HEDDLE_ELEMENTS(HEDDLE_ELEMENT)
#undef HEDDLE_ELEMENT
};

constexpr const ElementTraits &traitsOf(DType dtype) { return kElements[int(dtype)]; }
constexpr const char *dtypeName(DType dtype) { return traitsOf(dtype).name; }
constexpr int64_t dtypeBytes(DType dtype) { return traitsOf(dtype).bytes; }

// Some of the elements: `&ElementTraits::isOfCalls`. And one of their names: `&ElementTraits::mlirName`.
using ElementSet = bool (ElementTraits::*)() const;
using ElementName = const char *ElementTraits::*;

// The element of the set that is called so; nothing for any other text.
std::optional<DType> findElement(ElementName column, std::string_view name, ElementSet set = &ElementTraits::isKnown);
// The inverse of dtypeName for elements of calls.
std::optional<DType> parseDType(std::string_view name);
// Of a heddle_dtype; nothing for numbers that no tensor of a call may have.
std::optional<DType> dtypeOfCode(int32_t code);

std::vector<std::string> elementNames(ElementSet set);
// "bf16, fp16 or fp32".
std::string elementList(ElementSet set, ElementName column = &ElementTraits::name, const char *last = "or");
// "dtype: expected bf16 (1), fp16 (2) or fp32 (3), got 7": of a heddle_dtype that is none of the set.
std::string expectedElement(ElementSet set, int32_t code);

} // namespace heddle
