#include "compiler/Io/JsonPlace.h"
#include "runtime/Core/ParseCount.h"

#include <set>

namespace heddle {
namespace {

/// What is wrong with a text that is JSON otherwise: a reader would see one of two equal keys only.
std::optional<std::string> repeatedKey(const std::string &text) {
  std::vector<std::set<std::string>> keys;
  std::optional<std::string> repeated;
  const OrderedJson::parser_callback_t see = [&](int, OrderedJson::parse_event_t event, OrderedJson &parsed) {
    if (event == OrderedJson::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == OrderedJson::parse_event_t::object_end)
      keys.pop_back();
    else if (event == OrderedJson::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second &&
             !repeated)
      repeated = parsed.get<std::string>();
    return true;
  };
  static_cast<void>(OrderedJson::parse(text, see, /*allow_exceptions=*/false, /*ignore_comments=*/true));
  return repeated;
}

/// Objects whose keys keep their order look through all of them for each: they must be few.
Status checkObjects(const nlohmann::json &json, const std::string &label) {
  constexpr size_t kMostKeys = 256; // of a pattern's sizes
  std::vector<const nlohmann::json *> rest = {&json};
  while (!rest.empty()) {
    const nlohmann::json &value = *rest.back();
    rest.pop_back();
    if (value.is_object() && value.size() > kMostKeys)
      return Status::invalidArgument(label + ": expected at most " + std::to_string(kMostKeys) +
                                     " keys of an object, got " + std::to_string(value.size()));
    for (const nlohmann::json &inner : value)
      if (inner.is_structured())
        rest.push_back(&inner);
  }
  return {};
}

} // namespace

std::optional<int64_t> JsonPlace::count() const {
  if (value.is_string())
    return parseCount(value.get<std::string>());
  return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
}

Status JsonPlace::object(const std::map<std::string, JsonReader> &readers) const {
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

Status JsonPlace::list(const JsonReader &read) const {
  if (!value.is_array())
    return read(*this);
  if (value.empty())
    return expected("at least one value");
  for (size_t index = 0; index < value.size(); ++index)
    HEDDLE_TRY(read({value[index], where + "[" + std::to_string(index) + "]"}));
  return {};
}

JsonReader countInto(int64_t &count, int64_t least, int64_t most) {
  return [&count, least, most](const JsonPlace &place) {
    const std::optional<int64_t> read = place.count();
    if (read && *read > most)
      return place.expected("a whole number of at most " + std::to_string(most));
    if (!read || *read < least)
      return place.expected(least > std::numeric_limits<int64_t>::min()
                                ? "a whole number of at least " + std::to_string(least)
                                : "a whole number");
    count = *read;
    return Status();
  };
}

JsonReader realInto(double &real, double least, double most) {
  return [&real, least, most](const JsonPlace &place) {
    const std::optional<int64_t> count = place.count();
    if (!place.value.is_number() && !count)
      return place.expected("a number");
    const double read = count ? double(*count) : place.value.get<double>();
    if (!(read >= least && read <= most)) {
      char text[48];
      std::snprintf(text, sizeof text, "a number of at %s %g", read > most ? "most" : "least",
                    read > most ? most : least);
      return place.expected(text);
    }
    real = read;
    return Status();
  };
}

JsonReader flagInto(bool &flag) {
  return [&flag](const JsonPlace &place) {
    if (!place.value.is_boolean())
      return place.expected("true or false");
    flag = place.value.get<bool>();
    return Status();
  };
}

JsonReader textInto(std::string &text) {
  return [&text](const JsonPlace &place) {
    if (!place.value.is_string() || place.value.get<std::string>().empty())
      return place.expected("a text");
    text = place.value.get<std::string>();
    return Status();
  };
}

JsonReader textsInto(std::vector<std::string> &texts) {
  return [&texts](const JsonPlace &place) {
    return place.list([&texts](const JsonPlace &one) { return textInto(texts.emplace_back())(one); });
  };
}

Result<OrderedJson> parseJson(const std::string &text, const std::string &label) {
  try {
    HEDDLE_TRY(checkObjects(nlohmann::json::parse(text, nullptr, true, /*ignore_comments=*/true), label));
    OrderedJson json = OrderedJson::parse(text, nullptr, true, /*ignore_comments=*/true);
    if (const std::optional<std::string> key = repeatedKey(text))
      return Status::invalidArgument(label + ": the key '" + *key + "' is given twice in one object");
    return json;
  } catch (const OrderedJson::exception &error) { // numbers beyond any double among them
    return Status::invalidArgument(label + ": expected a plan in JSON: " + error.what());
  }
}

} // namespace heddle
