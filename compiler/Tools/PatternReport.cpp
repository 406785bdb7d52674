#include "compiler/Tools/PatternReport.h"
#include "codegen/Schedule/AttentionSchedule.h"

#include "compiler/Views/Cliff.h"
#include "compiler/Views/KeptPairs.h"
#include "compiler/Views/PieceWords.h"
#include "dialect/IR/PatternOperands.h"
#include "runtime/Core/CountText.h"
#include "dialect/IR/RealWord.h"

#include <cmath>

namespace heddle::cli {

static const char *combineName(const PatternFile &file) {
  attn::PatternOp pattern = file.pattern();
  return pattern.getSoftmax().getCombine() == attn::Combine::lse ? "lse" : "union";
}

static std::string originName(const AttentionSchedule &schedule) {
  return attn::stringifyOrigin(schedule.qOrigin).str();
}

/// The defaults, where there are some, and one head for each choice of head groups.
static attn::ProblemSizes typicalSizes(const PatternFile &file, int64_t length) {
  attn::PatternOp pattern = file.pattern();
  const int64_t heads = static_cast<int64_t>(file.analysis().variants.size());
  attn::ProblemSizes sizes{heads, length, length, 0, 0, {}};
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    sizes.parameters.push_back(pattern.getParameterDefault(i).value_or(pattern.getParameterMinimum(i)));
  return sizes;
}

std::vector<std::string> maskedParts(const PatternFile &file) {
  const attn::ProblemSizes sizes = typicalSizes(file, int64_t(1) << 30); // longer than any bound
  std::vector<std::string> parts;
  for (size_t v = 0; v < file.analysis().variants.size(); ++v) {
    const attn::Variant &variant = file.analysis().variants[v];
    for (size_t b = 0; b < variant.branches.size(); ++b) {
      const attn::BranchRanges &ranges = variant.forward.branches[b];
      const std::string where = "head group " + std::to_string(v) + ", branch " + std::to_string(b);
      const size_t found = parts.size();
      for (size_t p = 0; ranges.masked && p < variant.branches[b].size(); ++p) {
        const attn::Piece &piece = variant.branches[b][p];
        if (std::string why = attn::whyMasked(piece, attn::Direction::Forward); !why.empty())
          parts.push_back(where + ", piece " + std::to_string(p) + " (" + views::inWords(piece, sizes, int64_t(v)) +
                          "): " + why);
      }
      if (ranges.masked && parts.size() == found)
        parts.push_back(where + ": " + ranges.reason);
    }
  }
  return parts;
}

/// "line 5: " of the mask that a branch of the analysis comes from.
static std::string placeOf(const PatternFile &file, size_t branch) {
  attn::SoftmaxOp softmax = attn::PatternOp(file.pattern()).getSoftmax();
  const bool isOfOne = softmax.getBranches().size() == file.analysis().variants.front().branches.size();
  mlir::Operation *mask = softmax.getBranches()[isOfOne ? branch : 0].getDefiningOp();
  auto place = mask->getLoc()->findInstanceOf<mlir::FileLineColLoc>();
  return place ? "line " + std::to_string(place.getLine()) + ": " : "";
}

static bool givesAllSizes(const PatternFile &file) {
  attn::PatternOp pattern = file.pattern();
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    if (!pattern.isOperand(i) && !pattern.getParameterDefault(i))
      return false;
  return true;
}

std::optional<std::string> cliffLine(const PatternFile &file) {
  constexpr int64_t kTokens = int64_t(1) << 15;
  const attn::TileShape tile;
  if (!givesAllSizes(file))
    return std::nullopt;
  const attn::ProblemSizes sizes = typicalSizes(file, kTokens);
  const auto kept = views::keptPairsOf(file, sizes, {}, {/*mostPairs=*/0});
  if (!kept || !kept->count)
    return std::nullopt;
  const attn::TileCounts visited = attn::countTiles(file.analysis(), sizes, tile, attn::Direction::Forward);
  const auto cliff = views::cliffOf(file.analysis(), sizes, tile, *kept->count, visited);
  if (!cliff)
    return std::nullopt;
  return placeOf(file, cliff->branch) + "at " + counted(kTokens, "token") + " " + views::inWords(*cliff);
}

static std::string scoresInWords(const PatternFile &file) {
  attn::PatternOp pattern = file.pattern();
  return pattern.getSoftmax().scoresInWords();
}

static Json parameterJson(const ScheduleParameter &parameter) {
  Json json;
  auto finite = [](double bound) { return std::isfinite(bound) ? Json(bound) : Json(); };
  json["name"] = parameter.name;
  if (parameter.operand)
    return {{"name", parameter.name},
            {"type", "tensor of " + std::string(traitsOf(parameter.operand->element).mlirName)},
            {"has_length", parameter.operand->hasLength},
            {"doc", parameter.doc}};
  json["type"] = parameter.isReal ? "f32" : "i32";
  if (parameter.isReal) {
    json["default"] = parameter.defaultValue ? Json(attn::realOfWord(*parameter.defaultValue)) : Json();
    json["min"] = finite(parameter.realMinimum);
    json["max"] = finite(parameter.realMaximum);
  } else {
    json["default"] = parameter.defaultValue ? Json(*parameter.defaultValue) : Json();
    json["min"] = parameter.minimum;
  }
  json["doc"] = parameter.doc;
  return json;
}

/// What the analysis found for a branch of the schedule.
static const attn::BranchRanges &rangesOf(const PatternFile &file, size_t variant, size_t branch) {
  return file.analysis().variants[variant].forward.branches[branch];
}

static Json variantJson(const PatternFile &file, const AttentionSchedule &schedule, size_t index) {
  const ScheduleVariant &variant = schedule.variants[index];
  Json json;
  json["query_rate"] = variant.queryRate;
  json["branches"] = Json::array();
  for (size_t b = 0; b < variant.branches.size(); ++b) {
    const ScheduleBranch &branch = variant.branches[b];
    Json row;
    row["key_rate"] = branch.keyRate;
    row["masked"] = branch.masked;
    row["reason"] = branch.reason;
    row["may_visit_gaps"] = rangesOf(file, index, b).mayVisitGaps;
    json["branches"].push_back(std::move(row));
  }
  return json;
}

static Json reportJson(const PatternFile &file, const AttentionSchedule &schedule) {
  Json json;
  json["name"] = schedule.name;
  json["q_origin"] = originName(schedule);
  json["combine"] = combineName(file);
  json["parameters"] = Json::array();
  for (const ScheduleParameter &parameter : schedule.parameters)
    json["parameters"].push_back(parameterJson(parameter));
  json["scores"] = scoresInWords(file);
  json["branches"] = schedule.branchCount;
  json["variants"] = Json::array();
  for (size_t index = 0; index < schedule.variants.size(); ++index)
    json["variants"].push_back(variantJson(file, schedule, index));
  const std::vector<std::string> parts = maskedParts(file);
  json["masked"] = !parts.empty();
  json["masked_parts"] = parts;
  return json;
}

static std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

static std::string boundsText(const ScheduleParameter &parameter) {
  if (!parameter.isReal)
    return ", at least " + std::to_string(parameter.minimum);
  return (std::isfinite(parameter.realMinimum) ? ", at least " + number(parameter.realMinimum) : "") +
         (std::isfinite(parameter.realMaximum) ? ", at most " + number(parameter.realMaximum) : "");
}

/// "[batch, heads, 1, length]"
static std::string extentsText(const PatternFile &file, unsigned index) {
  attn::PatternOp pattern = file.pattern();
  auto type = llvm::cast<mlir::MemRefType>(pattern.getArgumentTypes()[index]);
  const attn::OperandUse use = attn::operandUses(pattern, index).front();
  std::string text;
  for (unsigned dimension = 0; dimension < type.getRank(); ++dimension) {
    text += dimension ? ", " : "[";
    text += type.isDynamicDim(dimension) ? attn::extentName(use.extents[dimension])
                                         : std::to_string(type.getDimSize(dimension));
  }
  return text + "]";
}

static std::string parameterText(const PatternFile &file, size_t index, const ScheduleParameter &parameter) {
  attn::PatternOp pattern = file.pattern();
  const std::string doc = parameter.doc.empty() ? "" : ": " + parameter.doc;
  if (parameter.operand)
    return "  tensor " + parameter.name + ", " + extentsText(file, index) + " of " +
           traitsOf(parameter.operand->element).mlirName + doc + "\n";
  std::string text = (parameter.isReal ? "  number " : "  size ") + parameter.name;
  text += parameter.defaultValue ? " = " + pattern.getParameterText(index, *parameter.defaultValue) : " (no default)";
  text += boundsText(parameter);
  return text + doc + "\n";
}

static std::string branchText(const ScheduleBranch &branch, const attn::BranchRanges &ranges) {
  std::string text = "keys at stride " + std::to_string(branch.keyRate) + "; ";
  text += branch.masked ? "masked: " + branch.reason : std::string("tiles in closed form");
  return text + (ranges.mayVisitGaps ? "; may visit tiles between the bands of two rows" : "") + "\n";
}

static std::string variantText(const PatternFile &file, const AttentionSchedule &schedule, size_t index) {
  const ScheduleVariant &variant = schedule.variants[index];
  std::string text = "  ";
  text += schedule.variants.size() > 1 ? "head group " + std::to_string(index) : std::string("all heads");
  text += ": rows at stride " + std::to_string(variant.queryRate) + "\n";
  for (size_t b = 0; b < variant.branches.size(); ++b)
    text += "    " + (variant.branches.size() > 1 ? "branch " + std::to_string(b) + ": " : std::string()) +
            branchText(variant.branches[b], rangesOf(file, index, b));
  return text;
}

static std::string reportText(const PatternFile &file, const AttentionSchedule &schedule) {
  std::string text = "  combine " + std::string(combineName(file)) + ", q_origin " + originName(schedule) + "\n";
  for (size_t index = 0; index < schedule.parameters.size(); ++index)
    text += parameterText(file, index, schedule.parameters[index]);
  if (std::string chain = scoresInWords(file); !chain.empty())
    text += "  scores " + chain + "\n";
  for (size_t index = 0; index < schedule.variants.size(); ++index)
    text += variantText(file, schedule, index);
  return text;
}

Result<PatternReport> reportOf(const PatternFile &file) {
  HEDDLE_ASSIGN(AttentionSchedule schedule, file.schedule());
  return PatternReport{reportJson(file, schedule), reportText(file, schedule)};
}

} // namespace heddle::cli
