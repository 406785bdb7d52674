//===- CostModel.cpp ----------------------------------------------------------===//
#include "tuner/Model/CostModel.h"

#include <charconv>
#include <cmath>
#include <set>
#include <sstream>

namespace heddle::tuner {

namespace {

constexpr std::string_view kFamily = "family ";

bool namesFamily(std::string_view line) { return line.substr(0, kFamily.size()) == kFamily; }

std::string shortest(double number) {
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  return error == std::errc() ? std::string(digits, end) : std::string("nan");
}

std::vector<CostParameter> *listOf(CostModel &model, const std::string &kind) {
  return kind == "term" ? &model.terms : kind == "factor" ? &model.factors : nullptr;
}

CostParameter *find(std::vector<CostParameter> &list, const std::string &name) {
  for (CostParameter &parameter : list)
    if (parameter.name == name)
      return &parameter;
  return nullptr;
}

Status readLine(const std::string &line, CostModel &model, std::set<const CostParameter *> &given) {
  std::istringstream words(line);
  std::string kind, name, number, more;
  words >> kind >> name >> number >> more;
  std::vector<CostParameter> *list = listOf(model, kind);
  if (!list || number.empty() || !more.empty())
    return Status::invalidArgument("expected 'term NAME VALUE' or 'factor NAME VALUE', got '" + line + "'");
  CostParameter *parameter = find(*list, name);
  if (!parameter)
    return Status::invalidArgument("the model has no " + kind + " '" + name + "'");
  if (!given.insert(parameter).second)
    return Status::invalidArgument(kind + " '" + name + "' is given twice");
  const char *end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, parameter->value);
  if (error != std::errc() || stop != end || !std::isfinite(parameter->value))
    return Status::invalidArgument(kind + " '" + name + "': expected a number, got '" + number + "'");
  if (kind == "term" && !(parameter->value > 0))
    return Status::invalidArgument("term '" + name + "': expected a weight above 0, got " + number);
  return {};
}

} // namespace

double CostModel::estimate(const CostFeatures &features) const {
  double us = 0, exponent = 0;
  for (size_t i = 0; i < terms.size(); ++i)
    us += terms[i].value * features.terms[i];
  for (size_t i = 0; i < factors.size(); ++i)
    exponent += factors[i].value * features.factors[i];
  return us * std::exp(exponent);
}

std::string CostModel::text() const {
  std::string result = family.empty() ? "" : std::string(kFamily) + family + "\n";
  for (const CostParameter &term : terms)
    result += "term " + term.name + " " + shortest(term.value) + "\n";
  for (const CostParameter &factor : factors)
    result += "factor " + factor.name + " " + shortest(factor.value) + "\n";
  return result;
}

Result<CostModel> CostModel::parse(const CostModel &shape, std::string_view text) {
  CostModel model = shape;
  std::set<const CostParameter *> given;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    if (line.empty() || line.front() == '#')
      continue;
    if (namesFamily(line)) {
      if (const std::string family = line.substr(kFamily.size()); family != shape.family)
        return Status::invalidArgument("line " + std::to_string(number) + ": the parameters are of '" + family +
                                       "', expected '" + shape.family + "'");
      continue;
    }
    if (Status status = readLine(line, model, given); !status.isOk())
      return Status(status.code(), "line " + std::to_string(number) + ": " + status.message());
  }
  for (const auto *list : {&model.terms, &model.factors})
    for (const CostParameter &parameter : *list)
      if (!given.count(&parameter) && parameter.value != 0)
        return Status::invalidArgument("the model lacks a value for '" + parameter.name + "'");
  return model;
}

std::string CostModel::familyOf(std::string_view text) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);)
    if (namesFamily(line))
      return line.substr(kFamily.size());
  return {};
}

} // namespace heddle::tuner
