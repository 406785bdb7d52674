#include "runtime/Core/CallShape.h"

namespace heddle {
namespace {

constexpr std::string_view kFloatOutSuffix = "_fp32_out";
constexpr const char *kPrecisionNames[] = {"exact", "tf32"};

// Without the suffix, if the text is more than that.
bool takeSuffix(std::string_view &text, std::string_view suffix) {
  if (text.size() <= suffix.size() || text.substr(text.size() - suffix.size()) != suffix)
    return false;
  text.remove_suffix(suffix.size());
  return true;
}

std::string suffixOf(Precision precision) {
  return precision == Precision::exact ? "" : std::string("_") + precisionName(precision);
}

} // namespace

const char *precisionName(Precision precision) { return kPrecisionNames[int(precision)]; }

std::optional<Precision> parsePrecision(std::string_view name) {
  for (Precision precision : {Precision::exact, Precision::tf32})
    if (name == precisionName(precision))
      return precision;
  return std::nullopt;
}

KindText KindText::of(const Kind &kind, const CallElements &elements) {
  return {kind, elements.out != CallElements::outOf(elements.q) && elements.out == kAccumulator, elements.precision};
}

CallElements KindText::elements(DType inputs) const {
  return CallElements(inputs, outFloat32 ? kAccumulator : CallElements::outOf(inputs), precision);
}

std::string KindText::str() const {
  std::string text = kind.str();
  if (outFloat32)
    text += kFloatOutSuffix;
  return text + suffixOf(precision);
}

Result<KindText> KindText::parse(std::string_view text) {
  KindText parsed;
  if (takeSuffix(text, suffixOf(Precision::tf32)))
    parsed.precision = Precision::tf32;
  parsed.outFloat32 = takeSuffix(text, kFloatOutSuffix);
  HEDDLE_ASSIGN(parsed.kind, Kind::parse(text));
  return parsed;
}

} // namespace heddle
