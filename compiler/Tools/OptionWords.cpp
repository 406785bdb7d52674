#include "compiler/Tools/OptionWords.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/KernelShape.h"
#include "compiler/Pattern/Suggest.h"
#include "runtime/Core/ParseCount.h"
#include "tuner/Search/Strategies.h"

#include <CLI/CLI.hpp>

#include <charconv>

namespace heddle::cli {

static constexpr const char *kCountCheck = "count";

CLI::Option *takesCount(CLI::Option *option) {
  auto read = [](std::string &text) {
    const std::optional<int64_t> count = parseCount(text);
    if (!count)
      return std::string("expected ") + kCountForms + ", got '" + text + "'";
    text = std::to_string(*count);
    return std::string();
  };
  return option->transform(CLI::Validator(read, "", kCountCheck));
}

bool isCount(const CLI::Option &option) {
  try {
    return const_cast<CLI::Option &>(option).get_validator(kCountCheck) != nullptr;
  } catch (const CLI::OptionNotFound &) {
    return false;
  }
}

static bool isNumber(const std::string &text) {
  return !text.empty() && text.find_first_not_of("-0123456789") == std::string::npos;
}

static std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

/// "" if `name` is one of `names`.
static std::string unknown(const std::string &kind, const std::string &name, const std::vector<std::string> &names) {
  if (std::find(names.begin(), names.end(), name) != names.end())
    return "";
  return "no " + kind + " '" + name + "'" + didYouMean(name, names) + "; there is " + joined(names);
}

/// CLI11 prints a check's description and never its name: that is where the words are kept, as CLI::IsMember describes
/// its own.
static CLI::Validator wordCheck(std::function<std::string(std::string &)> check,
                                const std::vector<std::string> &names) {
  return CLI::Validator(std::move(check), "", "{" + CLI::detail::join(names, ",") + "}");
}

static std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::vector<std::string> choicesOf(const CLI::Option &option) {
  std::string listed = option.get_type_name();
  try {
    for (int i = 0;; ++i)
      listed += " " + const_cast<CLI::Option &>(option).get_validator(i)->get_name(); // CLI11 has no const access
  } catch (const CLI::OptionNotFound &) {                                             // after the last
  }
  const size_t begin = listed.find('{'), end = listed.find('}');
  return end == std::string::npos ? std::vector<std::string>() : split(listed.substr(begin + 1, end - begin - 1), ',');
}

CLI::Validator oneOf(const std::string &kind, const std::vector<std::string> &names) {
  return wordCheck([kind, names](std::string &name) { return unknown(kind, name, names); }, names);
}

CLI::Validator gpuName() {
  std::vector<std::string> names;
  for (const GpuModel &model : gpuModels())
    names.emplace_back(model.name);
  for (const std::string &arch : gpuArchNames())
    names.push_back(arch);
  return wordCheck(
      [names](std::string &name) { return findGpuModel(name) ? std::string() : unknown("GPU", name, names); }, names);
}

/// Strategies take plain numbers.
static bool isIn(const tuner::StrategyOption &range, const std::string &text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= range.least && value <= range.most;
}

static std::string checkStrategyOption(const tuner::Strategy &strategy, const std::string &assignment) {
  const std::string name = assignment.substr(0, assignment.find('='));
  std::vector<std::string> names;
  for (const tuner::StrategyOption &option : strategy.options) {
    names.push_back(option.name);
    if (option.name != name)
      continue;
    if (name.size() < assignment.size() && isIn(option, assignment.substr(name.size() + 1)))
      return "";
    return "expected " + name + "=N with N from " + std::to_string(option.least) + " to " +
           std::to_string(option.most) + ", got '" + assignment + "'";
  }
  return unknown("option of strategy " + std::string(strategy.name), name, names);
}

/// "" if it is one, as orderPoints() says later.
static std::string checkStrategy(const std::string &text, const std::vector<std::string> &names) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string name = text.substr(0, colon);
  for (const tuner::Strategy &strategy : tuner::strategies())
    if (name == strategy.name)
      for (const std::string &assignment : split(text.substr(std::min(colon + 1, text.size())), ','))
        if (std::string wrong = checkStrategyOption(strategy, assignment); !wrong.empty())
          return wrong;
  return unknown("strategy", name, names);
}

CLI::Validator strategyWords() {
  std::vector<std::string> names;
  for (const tuner::Strategy &strategy : tuner::strategies())
    names.emplace_back(strategy.name);
  return wordCheck([names](std::string &text) { return checkStrategy(text, names); }, names);
}

/// In the order of their numbers, of which some have no name.
static std::vector<std::string> namedValues(const ConfigField &field) {
  std::vector<std::string> names;
  std::copy_if(field.names.begin(), field.names.end(), std::back_inserter(names),
               [](const std::string &name) { return !name.empty(); });
  return names;
}

CLI::Validator configFields() {
  auto check = [](std::string &text) {
    const std::vector<std::string> names = configFieldNames();
    if (text == kDefaultChanges)
      return std::string();
    for (const std::string &assignment : split(text, ',')) {
      const std::string name = assignment.substr(0, assignment.find('='));
      const std::string value = assignment.substr(std::min(name.size() + 1, assignment.size()));
      std::string wrong = unknown("configuration field", name, names);
      if (wrong.empty() && name == "skeleton" && !value.empty())
        wrong = unknown("skeleton", value, skeletonNames());
      if (const ConfigField *field = findConfigField(name); field && !field->names.empty() && !isNumber(value))
        wrong = unknown("value of " + name, value, namedValues(*field));
      if (!wrong.empty())
        return wrong;
    }
    return std::string();
  };
  return CLI::Validator(check, "", "FIELDS");
}

CLI::Validator realBetween(double least, double most) {
  auto check = [least, most](std::string &text) {
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0' && value >= least && value <= most) // a NaN is neither
      return std::string();
    char expected[80];
    std::snprintf(expected, sizeof expected, "expected a number from %g to %g, got '", least, most);
    return expected + text + "'";
  };
  return CLI::Validator(check, "", "REAL");
}

} // namespace heddle::cli
