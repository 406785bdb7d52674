#include "codegen/Config/KernelConfig.h"

#include <algorithm>
#include <charconv>

namespace heddle {
namespace {

constexpr std::string_view kSkeleton = "skeleton";

Status parseNumber(std::string_view field, std::string_view text, int64_t &value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size())
    return {};
  return Status::invalidArgument("expected a whole number for " + std::string(field) + ", got '" + std::string(text) +
                                 "'");
}

} // namespace

std::string ConfigField::spelled(int64_t value) const {
  const bool hasName = value >= 0 && value < int64_t(names.size()) && !names[size_t(value)].empty();
  return hasName ? names[size_t(value)] : std::to_string(value);
}

std::optional<int64_t> ConfigField::read(std::string_view text) const {
  const auto found = text.empty() ? names.end() : std::find(names.begin(), names.end(), text);
  if (found != names.end())
    return int64_t(found - names.begin());
  int64_t value = 0;
  return parseNumber(name, text, value).isOk() ? std::optional(value) : std::nullopt;
}

Result<size_t> ConfigFields::find(std::string_view field) const {
  std::string names(kSkeleton);
  for (size_t place = 0; place < list.size(); ++place) {
    if (list[place].name == field)
      return place;
    names += ", " + list[place].name;
  }
  return Status::notFound("no configuration field '" + std::string(field) + "' of " + skeleton + "; there is " + names);
}

KernelConfig::KernelConfig() {
  static const ConfigFields none;
  family = &none;
}

KernelConfig::KernelConfig(const ConfigFields &fields) : family(&fields) {
  for (const ConfigField &field : fields.list)
    values.push_back(field.initial);
}

std::string KernelConfig::str() const {
  std::string text = std::string(kSkeleton) + "=" + skeleton() + "\n";
  for (const auto &[name, value] : coordinates())
    text += name + "=" + std::to_string(value) + "\n";
  return text;
}

std::string KernelConfig::json() const {
  std::string text = "{\"skeleton\":\"" + skeleton() + "\"";
  for (const auto &[name, value] : coordinates())
    text += ",\"" + name + "\":" + std::to_string(value);
  return text + "}";
}

std::string KernelConfig::summary() const {
  std::string text;
  for (const auto &[name, value] : coordinates())
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  return text;
}

std::string KernelConfig::spelled() const {
  std::string text;
  for (size_t place = 0; place < values.size(); ++place)
    text += (text.empty() ? "" : " ") + family->list[place].name + "=" + family->list[place].spelled(values[place]);
  return text;
}

Result<KernelConfig> KernelConfig::parse(const ConfigFields &fields, std::string_view text) {
  KernelConfig config(fields);
  std::string seen = "\n";
  for (int line = 1; !text.empty(); ++line) {
    const std::string where = "configuration: line " + std::to_string(line) + ": ";
    const std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(row.size() + 1, text.size()));
    const size_t equals = row.find('=');
    if (equals == std::string_view::npos)
      return Status::invalidArgument(where + "expected name=value, got '" + std::string(row) + "'");
    const std::string field(row.substr(0, equals));
    const std::string_view value = row.substr(equals + 1);
    if (seen.find("\n" + field + "\n") != std::string::npos)
      return Status::invalidArgument(where + field + " is given twice");
    seen += field + "\n";
    if (field == kSkeleton) {
      if (value != fields.skeleton)
        return Status::invalidArgument(where + "expected a configuration of " + fields.skeleton + ", got one of '" +
                                       std::string(value) + "'");
      continue;
    }
    const Result<size_t> place = fields.find(field);
    const Status status = place ? parseNumber(field, value, config[*place]) : place.status();
    if (!status.isOk())
      return Status::invalidArgument(where + status.message());
  }
  return config;
}

std::vector<std::pair<std::string, int64_t>> KernelConfig::coordinates() const {
  std::vector<std::pair<std::string, int64_t>> result;
  for (size_t place = 0; place < values.size(); ++place)
    result.emplace_back(family->list[place].name, values[place]);
  return result;
}

Status KernelConfig::set(std::string_view field, int64_t value) {
  HEDDLE_ASSIGN(const size_t place, family->find(field));
  values[place] = value;
  return {};
}

Result<int64_t> KernelConfig::get(std::string_view field) const {
  HEDDLE_ASSIGN(const size_t place, family->find(field));
  return values[place];
}

int64_t KernelConfig::valueOf(std::string_view field) const {
  for (size_t place = 0; place < values.size(); ++place)
    if (family->list[place].name == field)
      return values[place];
  return 0;
}

std::optional<std::string> checkRanges(const KernelRequest &, const KernelConfig &config) {
  const std::vector<ConfigField> &fields = config.fields().list;
  for (size_t place = 0; place < fields.size(); ++place) {
    const ConfigField &field = fields[place];
    if (config[place] < field.least || config[place] > field.most)
      return field.name + " is " + std::to_string(config[place]) + ", expected " + std::to_string(field.least) +
             (field.most == field.least ? "" : " to " + std::to_string(field.most));
  }
  return std::nullopt;
}

std::string deviceConstantName(std::string_view field) {
  std::string name = "k";
  bool isUpper = true;
  for (char c : field) {
    if (c == '_') {
      isUpper = true;
      continue;
    }
    name += isUpper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    isUpper = false;
  }
  return name;
}

} // namespace heddle
