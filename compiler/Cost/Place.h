//===- Place.h - a value in a JSON file and where it stands -----*- C++ -*-===//
// Owns how a cost file is read: every value has the file and a JSON pointer, which errors name. An object takes the keys
// that it is read with and no others.
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Core/Status.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <limits>
#include <map>
#include <string>

namespace heddle::cost {

using Json = nlohmann::ordered_json;

struct Place;
using Reader = std::function<Status(const Place &)>;

struct Place {
  const Json &value;
  std::string file, pointer;

  Status wrong(const std::string &what) const;
  Status expected(const std::string &what) const { return wrong("expected " + what + ", got " + value.dump()); }
  Status missing(const std::string &key) const { return wrong("expected \"" + key + "\""); }
  Place at(const std::string &key) const { return {value.at(key), file, pointer + "/" + key}; }
  Status object(const std::map<std::string, Reader> &readers) const;
  /// One value in place of a list of one.
  Status list(const Reader &read) const;
};

/// A whole number of at least `least`, or a text that stands for one ("8k").
Reader countInto(int64_t &count, int64_t least = 1);
/// Likewise any number of at least `least`, not above 1e30.
Reader realInto(double &real, double least = 0);
Reader flagInto(bool &flag);
Reader textInto(std::string &text);

/// invalidArgument: no JSON, a key twice in one object, or nested deeper than any plan.
Result<Json> parseJson(const std::string &text, const std::string &label);

} // namespace heddle::cost
