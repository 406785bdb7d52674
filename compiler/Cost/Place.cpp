//===- Place.cpp - a value in a JSON file and where it stands -------------===//
#include "compiler/Cost/Place.h"
#include "runtime/Core/ParseCount.h"

#include <optional>
#include <set>
#include <vector>

namespace heddle::cost {
namespace {

std::optional<int64_t> countIn(const Json &value) {
  if (value.is_string())
    return parseCount(value.get<std::string>());
  return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
}

/// What is wrong with a text that is JSON otherwise: a reader would see one of two equal keys only.
std::optional<std::string> repeatedKey(const std::string &text) {
  std::vector<std::set<std::string>> keys;
  std::optional<std::string> repeated;
  const Json::parser_callback_t see = [&](int, Json::parse_event_t event, Json &parsed) {
    if (event == Json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == Json::parse_event_t::object_end)
      keys.pop_back();
    else if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second && !repeated)
      repeated = parsed.get<std::string>();
    return true;
  };
  static_cast<void>(Json::parse(text, see, /*allow_exceptions=*/false, /*ignore_comments=*/true));
  return repeated;
}

} // namespace

Status Place::wrong(const std::string &what) const {
  return Status::invalidArgument(file + ": " + (pointer.empty() ? "/" : pointer) + ": " + what);
}

Status Place::object(const std::map<std::string, Reader> &readers) const {
  std::string known;
  for (const auto &reader : readers)
    known += (known.empty() ? "" : ", ") + reader.first;
  if (!value.is_object())
    return expected("an object with " + known);
  for (const auto &entry : value.items()) {
    const auto reader = readers.find(entry.key());
    if (reader == readers.end())
      return wrong("unknown key '" + entry.key() + "'; there are " + known);
    HEDDLE_TRY(reader->second(at(entry.key())));
  }
  return {};
}

Status Place::list(const Reader &read) const {
  if (!value.is_array())
    return read(*this);
  if (value.empty())
    return expected("at least one value");
  for (size_t index = 0; index < value.size(); ++index)
    HEDDLE_TRY(read({value[index], file, pointer + "/" + std::to_string(index)}));
  return {};
}

Reader countInto(int64_t &count, int64_t least) {
  return [&count, least](const Place &place) {
    constexpr int64_t kMost = int64_t(1) << 40;
    const std::optional<int64_t> read = countIn(place.value);
    if (!read || *read < least || *read > kMost)
      return place.expected(least > std::numeric_limits<int64_t>::min()
                                ? "a whole number of at least " + std::to_string(least)
                                : "a whole number");
    count = *read;
    return Status();
  };
}

Reader realInto(double &real, double least) {
  return [&real, least](const Place &place) {
    const std::optional<int64_t> count = countIn(place.value);
    if (!place.value.is_number() && !count)
      return place.expected("a number");
    const double read = count ? double(*count) : place.value.get<double>();
    if (!(read >= least && read <= 1e30)) {
      char text[32];
      std::snprintf(text, sizeof text, "%g", least);
      return place.expected("a number of at least " + std::string(text));
    }
    real = read;
    return Status();
  };
}

Reader flagInto(bool &flag) {
  return [&flag](const Place &place) {
    if (!place.value.is_boolean())
      return place.expected("true or false");
    flag = place.value.get<bool>();
    return Status();
  };
}

Reader textInto(std::string &text) {
  return [&text](const Place &place) {
    if (!place.value.is_string() || place.value.get<std::string>().empty())
      return place.expected("a text");
    text = place.value.get<std::string>();
    return Status();
  };
}

Result<Json> parseJson(const std::string &text, const std::string &label) {
  try {
    Json json = Json::parse(text, nullptr, true, /*ignore_comments=*/true);
    if (const std::optional<std::string> key = repeatedKey(text))
      return Status::invalidArgument(label + ": the key '" + *key + "' is given twice in one object");
    return json;
  } catch (const Json::exception &error) {
    return Status::invalidArgument(label + ": expected a plan in JSON: " + error.what());
  }
}

} // namespace heddle::cost
