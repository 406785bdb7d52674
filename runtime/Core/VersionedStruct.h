// Owns what struct_size means. Fields are appended only, in multiples of 8 bytes: a smaller struct stands for an older
// version, whose missing fields are zero; a larger one for a newer version, whose further fields must be zero where
// they are given and become zero where they are asked for.
#pragma once

#include "runtime/Core/Status.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace heddle {

constexpr uint32_t kMaxStructBytes = 4096;

// What is wrong with a size; with byte number `place` of a field that is not known.
Status badStructSize(const char *what, uint32_t bytes, size_t least);
Status unknownField(const char *what, size_t place);

// `least` bytes are those that every caller has: never sizeof, which grows. `what` begins the message.
template <class T> Status checkStructSize(const char *what, const T &given, size_t least) {
  const uint32_t bytes = given.struct_size;
  if (bytes >= least && bytes <= kMaxStructBytes && bytes % 8 == 0)
    return {};
  return badStructSize(what, bytes, least);
}

// Makes `known` what the caller gives, as this version sees it.
template <class T> Status readVersioned(const char *what, const T &given, size_t least, T &known) {
  HEDDLE_TRY(checkStructSize(what, given, least));
  const size_t bytes = given.struct_size, shared = std::min(bytes, sizeof(T));
  const unsigned char *raw = reinterpret_cast<const unsigned char *>(&given);
  for (size_t i = sizeof(T); i < bytes; ++i)
    if (raw[i] != 0)
      return unknownField(what, i);
  std::memcpy(static_cast<void *>(&known), raw, shared);
  std::memset(reinterpret_cast<unsigned char *>(&known) + shared, 0, sizeof(T) - shared);
  return {};
}

// Writes as much of `known` as the caller's struct has room for; its struct_size stays.
template <class T> Status writeVersioned(const char *what, const T &known, size_t least, T &asked) {
  HEDDLE_TRY(checkStructSize(what, asked, least));
  const uint32_t bytes = asked.struct_size;
  unsigned char *raw = reinterpret_cast<unsigned char *>(&asked);
  std::memcpy(raw, &known, std::min<size_t>(bytes, sizeof(T)));
  if (bytes > sizeof(T))
    std::memset(raw + sizeof(T), 0, bytes - sizeof(T));
  asked.struct_size = bytes;
  return {};
}

} // namespace heddle
