//===- ElementType.h - elements of the tensors that a pattern reads ---------===//
// Beside q, k, v and out (DType.h) a pattern may read tensors of its own, and those may hold integers.
#pragma once

#include <cstdint>

namespace heddle {

enum class ElementType : uint8_t { i32, f32, bf16, f16, i64 };

inline bool isInteger(ElementType type) { return type == ElementType::i32 || type == ElementType::i64; }

// As in the text of a pattern.
inline const char *elementTypeName(ElementType type) {
  constexpr const char *names[] = {"i32", "f32", "bf16", "f16", "i64"};
  return names[int(type)];
}

inline int64_t elementBytes(ElementType type) {
  constexpr int64_t bytes[] = {4, 4, 2, 2, 8};
  return bytes[int(type)];
}

} // namespace heddle
