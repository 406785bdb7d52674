//===- PatternReport.cpp - what kernels make of a pattern -----------------===//
#include "compiler/Tools/PatternReport.h"

#include <algorithm>

namespace heddle::cli {

static const char *combineName(const PatternFile &file) {
  attn::PatternOp pattern = file.pattern();
  return pattern.getSoftmax().getCombine() == attn::Combine::lse ? "lse" : "union";
}

static std::string originName(const AttentionSchedule &schedule) { return attn::stringifyOrigin(schedule.qOrigin).str(); }

bool hasMaskedPart(const AttentionSchedule &schedule) {
  for (const ScheduleVariant &variant : schedule.variants)
    for (const ScheduleBranch &branch : variant.branches)
      if (branch.masked)
        return true;
  return false;
}

static Json parameterJson(const ScheduleParameter &parameter) {
  Json json;
  json["name"] = parameter.name;
  json["default"] = parameter.defaultValue ? Json(*parameter.defaultValue) : Json();
  json["min"] = parameter.minimum;
  json["doc"] = parameter.doc;
  return json;
}

static Json variantJson(const ScheduleVariant &variant) {
  Json json;
  json["query_rate"] = variant.queryRate;
  json["branches"] = Json::array();
  for (const ScheduleBranch &branch : variant.branches)
    json["branches"].push_back(Json{{"key_rate", branch.keyRate}, {"masked", branch.masked}, {"reason", branch.reason}});
  return json;
}

Json reportJson(const PatternFile &file, const AttentionSchedule &schedule) {
  Json json;
  json["name"] = schedule.name;
  json["q_origin"] = originName(schedule);
  json["combine"] = combineName(file);
  json["parameters"] = Json::array();
  for (const ScheduleParameter &parameter : schedule.parameters)
    json["parameters"].push_back(parameterJson(parameter));
  json["branches"] = schedule.branchCount;
  json["variants"] = Json::array();
  for (const ScheduleVariant &variant : schedule.variants)
    json["variants"].push_back(variantJson(variant));
  json["masked"] = hasMaskedPart(schedule);
  return json;
}

static std::string parameterText(const ScheduleParameter &parameter) {
  std::string text = "  size " + parameter.name;
  text += parameter.defaultValue ? " = " + std::to_string(*parameter.defaultValue) : " (no default)";
  text += ", at least " + std::to_string(parameter.minimum);
  return text + (parameter.doc.empty() ? "" : ": " + parameter.doc) + "\n";
}

static std::string branchText(const ScheduleBranch &branch, const std::string &who) {
  std::string text = "    " + who + "keys at stride " + std::to_string(branch.keyRate);
  if (!branch.masked)
    return text + "; tiles in closed form\n";
  return text + "; masked: " + branch.reason + "\n";
}

static std::string variantText(const AttentionSchedule &schedule, size_t index) {
  const ScheduleVariant &variant = schedule.variants[index];
  std::string text = "  ";
  text += schedule.variants.size() > 1 ? "head group " + std::to_string(index) : std::string("all heads");
  text += ": rows at stride " + std::to_string(variant.queryRate) + "\n";
  for (size_t b = 0; b < variant.branches.size(); ++b)
    text += branchText(variant.branches[b], variant.branches.size() > 1 ? "branch " + std::to_string(b) + ": " : "");
  return text;
}

std::string reportText(const PatternFile &file, const AttentionSchedule &schedule) {
  std::string text = "  combine " + std::string(combineName(file)) + ", q_origin " + originName(schedule) + "\n";
  for (const ScheduleParameter &parameter : schedule.parameters)
    text += parameterText(parameter);
  for (size_t index = 0; index < schedule.variants.size(); ++index)
    text += variantText(schedule, index);
  return text;
}

} // namespace heddle::cli
