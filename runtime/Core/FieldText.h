// Owns what every struct with a field list gets for free. A field list is
//   template <class F> static void fields(F &&f) { f("name", &Type::member); ... }
// with members of type std::string, int64_t, double or DType. Text is "name=value" per line, in list
// order; newlines and backslashes in values are escaped, so equal text means equal values.
#pragma once

#include "runtime/Core/DType.h"
#include "runtime/Core/Digest.h"

#include <cstdint>
#include <string>

namespace heddle {

std::string fieldValueText(const std::string &value);
std::string fieldValueText(int64_t value);
std::string fieldValueText(double value); // shortest text that reads back to the same value
std::string fieldValueText(DType value);

template <class T> std::string fieldText(const T &object) {
  std::string text;
  T::fields(
      [&](const char *name, auto member) { text += std::string(name) + "=" + fieldValueText(object.*member) + "\n"; });
  return text;
}

// Names the values of `object`, and only them: two objects share it when all fields are equal.
template <class T> std::string fieldDigest(const T &object) { return sha256Hex(fieldText(object)); }

template <class T> bool fieldsEqual(const T &a, const T &b) { return fieldText(a) == fieldText(b); }

} // namespace heddle
