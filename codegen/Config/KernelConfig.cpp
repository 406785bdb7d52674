//===- KernelConfig.cpp - everything derived from the field list ------------------===//
#include "codegen/Config/KernelConfig.h"

#include "runtime/Core/FieldText.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <type_traits>

namespace heddle {
namespace {

// Calls f(name, member) for the numeric fields only.
template <class F> void forEachNumber(F &&f) {
  KernelConfig::fields([&](const char *name, auto member) {
    if constexpr (std::is_same_v<decltype(member), int64_t KernelConfig::*>)
      f(std::string_view(name), member);
  });
}

std::string fieldNames() {
  std::string names;
  KernelConfig::fields([&](const char *name, auto) { names.append(names.empty() ? "" : ", ").append(name); });
  return names;
}

Status unknownField(std::string_view field) {
  return Status::notFound("no configuration field '" + std::string(field) + "'; there is " + fieldNames());
}

bool parseNumber(std::string_view text, int64_t &value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool isName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

// Fills one field from its text; `isKnown` tells whether the field exists.
Status assign(KernelConfig &config, std::string_view field, std::string_view value, bool &isKnown) {
  Status status;
  KernelConfig::fields([&](const char *name, auto member) {
    if (field != name)
      return;
    isKnown = true;
    if constexpr (std::is_same_v<decltype(member), std::string KernelConfig::*>) {
      config.*member = value;
      if (!isName(value))
        status = Status::invalidArgument("expected a name of letters, digits and _ for " + std::string(name));
    } else if (!parseNumber(value, config.*member)) {
      status = Status::invalidArgument("expected a whole number for " + std::string(name) + ", got '" +
                                       std::string(value) + "'");
    }
  });
  return status;
}

} // namespace

std::string KernelConfig::str() const { return fieldText(*this); }

std::string KernelConfig::digest() const { return fieldDigest(*this); }

std::string KernelConfig::json() const {
  std::string text;
  fields([&](const char *name, auto member) {
    text += (text.empty() ? "{\"" : ",\"") + std::string(name) + "\":";
    if constexpr (std::is_same_v<decltype(member), std::string KernelConfig::*>)
      text += "\"" + this->*member + "\"";
    else
      text += std::to_string(this->*member);
  });
  return text + "}";
}

std::string KernelConfig::summary() const {
  std::string text;
  for (const auto &[name, value] : coordinates())
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  return text;
}

Result<KernelConfig> KernelConfig::parse(std::string_view text) {
  KernelConfig config;
  std::string seen = "\n";
  for (int line = 1; !text.empty(); ++line) {
    const std::string where = "configuration: line " + std::to_string(line) + ": ";
    const std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(row.size() + 1, text.size()));
    const size_t equals = row.find('=');
    if (equals == std::string_view::npos)
      return Status::invalidArgument(where + "expected name=value, got '" + std::string(row) + "'");
    const std::string field(row.substr(0, equals));
    if (seen.find("\n" + field + "\n") != std::string::npos)
      return Status::invalidArgument(where + field + " is given twice");
    seen += field + "\n";
    bool isKnown = false;
    const Status status = assign(config, field, row.substr(equals + 1), isKnown);
    if (!isKnown)
      return Status::invalidArgument(where + unknownField(field).message());
    if (!status.isOk())
      return Status::invalidArgument(where + status.message());
  }
  std::string missing;
  fields([&](const char *name, auto) {
    if (missing.empty() && seen.find("\n" + std::string(name) + "\n") == std::string::npos)
      missing = name;
  });
  if (!missing.empty())
    return Status::invalidArgument("configuration: field " + missing + " is missing");
  return config;
}

std::vector<std::pair<std::string, int64_t>> KernelConfig::coordinates() const {
  std::vector<std::pair<std::string, int64_t>> result;
  forEachNumber([&](std::string_view name, auto member) { result.emplace_back(name, this->*member); });
  return result;
}

Status KernelConfig::set(std::string_view field, int64_t value) {
  bool isKnown = false;
  forEachNumber([&](std::string_view name, auto member) {
    if (name != field)
      return;
    this->*member = value;
    isKnown = true;
  });
  return isKnown ? Status() : unknownField(field);
}

Result<int64_t> KernelConfig::get(std::string_view field) const {
  for (const auto &[name, value] : coordinates())
    if (name == field)
      return value;
  return unknownField(field);
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
