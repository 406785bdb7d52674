//===- DType.h - element types ----------------------------------------------===//
// Owns the element types that kernels read and write, their names in every text of the project, and
// their sizes. The numbers are part of the C ABI (heddle_dtype = number + 1).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle {

enum class DType : uint8_t { bf16 = 0, fp16 = 1, fp32 = 2 };

// "bf16", "fp16" or "fp32".
constexpr const char *dtypeName(DType dtype) {
  return dtype == DType::bf16 ? "bf16" : dtype == DType::fp16 ? "fp16" : "fp32";
}

constexpr int64_t dtypeBytes(DType dtype) { return dtype == DType::fp32 ? 4 : 2; }

// The inverse of dtypeName; nothing for any other text.
inline std::optional<DType> parseDType(std::string_view name) {
  for (DType dtype : {DType::bf16, DType::fp16, DType::fp32})
    if (name == dtypeName(dtype))
      return dtype;
  return std::nullopt;
}

} // namespace heddle
