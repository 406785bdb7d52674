// Owns how plans are read: every value has the file and the way to it, which errors name ("plan.json: patterns[2].set"). An
// object takes the keys that it is read with and no others.
#pragma once

#include "runtime/Core/Status.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace heddle {

using OrderedJson = nlohmann::ordered_json;

struct JsonPlace;
using JsonReader = std::function<Status(const JsonPlace &)>;

struct JsonPlace {
  const OrderedJson &value;
  std::string where;
  const char *separator = "."; ///< before the name of what is inside; behind the name of a file ": "

  Status wrong(const std::string &what) const { return Status::invalidArgument(where + ": " + what); }
  Status expected(const std::string &what) const { return wrong("expected " + what + ", got " + value.dump()); }
  Status missing(const std::string &key) const { return wrong("expected \"" + key + "\""); }
  JsonPlace at(const std::string &key) const { return {value.at(key), where + separator + key}; }
  Status object(const std::map<std::string, JsonReader> &readers) const;
  /// One value in place of a list of one.
  Status list(const JsonReader &read) const;
  /// A whole number, or a text that stands for one ("8k"); nothing for other values.
  std::optional<int64_t> count() const;
};

/// A count from `least` to `most`.
JsonReader countInto(int64_t &count, int64_t least = 1, int64_t most = int64_t(1) << 40);
/// Likewise any number.
JsonReader realInto(double &real, double least = 0, double most = 1e30);
JsonReader flagInto(bool &flag);
JsonReader textInto(std::string &text);
JsonReader textsInto(std::vector<std::string> &texts);

/// invalidArgument: no JSON, a key twice in one object, or an object of so many keys that looking for one takes long.
Result<OrderedJson> parseJson(const std::string &text, const std::string &label);

} // namespace heddle
