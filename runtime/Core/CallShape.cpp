#include "runtime/Core/CallShape.h"

#include <algorithm>
#include <iterator>

namespace heddle {
namespace {

constexpr std::string_view kOut = "_out", kKeys = "_kv", kScaleRowsWord = "_scale_rows_";
constexpr const char *kPrecisionNames[] = {"exact", "tf32", "fast"};

// Without the suffix, if the text is more than that.
bool takeSuffix(std::string_view &text, std::string_view suffix) {
  if (text.size() <= suffix.size() || text.substr(text.size() - suffix.size()) != suffix)
    return false;
  text.remove_suffix(suffix.size());
  return true;
}

// "_fp32_out"
std::string suffixOf(DType dtype, std::string_view of) { return std::string("_") + dtypeName(dtype) + std::string(of); }

std::optional<DType> takeElement(std::string_view &text, std::string_view of) {
  for (const ElementTraits &element : kElements)
    if (element.isComputed() && takeSuffix(text, suffixOf(element.dtype, of)))
      return element.dtype;
  return std::nullopt;
}

int64_t takeScaleRows(std::string_view &text) {
  for (int64_t rows : kScaleRows)
    if (takeSuffix(text, std::string(kScaleRowsWord) + std::to_string(rows)))
      return rows;
  return 0;
}

std::string suffixOf(Precision precision) {
  return precision == Precision::exact ? "" : std::string("_") + precisionName(precision);
}

} // namespace

const char *precisionName(Precision precision) { return kPrecisionNames[int(precision)]; }

std::optional<Precision> parsePrecision(std::string_view name) {
  for (Precision precision : kPrecisions)
    if (name == precisionName(precision))
      return precision;
  return std::nullopt;
}

Status checkElements(const CallElements &elements, bool takesScaledKeys) {
  const DType q = elements.q, out = elements.out;
  if (!elements.areAlike() && !(takesScaledKeys && elements.hasScaledKeys()))
    return Status::unsupported(
        std::string("serves q, k and v of one type") +
        (takesScaledKeys ? ", or k and v of e4m3 beside q of bf16 or fp16" : "") + ", not " + dtypeName(q) + ", " +
        dtypeName(elements.k) + " and " + dtypeName(elements.v) +
        (!takesScaledKeys && elements.hasScaledKeys() ? "; forward calls and those of kind decode have these" : ""));
  const DType of = elementOf(elements.precision);
  if (elements.precision != Precision::exact && q != of)
    return Status::unsupported(std::string("serves ") + dtypeName(q) + " with precision exact, not " +
                               precisionName(elements.precision) + ", which is of " + dtypeName(of));
  const bool isScaled = traitsOf(q).isScaled();
  if (out == CallElements::outOf(q) || out == kAccumulator || (isScaled && traitsOf(out).isPacked()))
    return {};
  return Status::unsupported(std::string("serves out of ") + (isScaled ? "bf16, fp16" : "the type of q") + " or " +
                             dtypeName(kAccumulator) + ", not " + dtypeName(out));
}

Status checkGradientElements(const Kind &kind, const CallElements &elements) {
  if (!kind.isBackward() || !traitsOf(elements.q).isScaled())
    return {};
  return Status::unsupported(std::string("serves gradients of bf16, fp16 and fp32, not of ") + dtypeName(elements.q) +
                             "; those of bf16 q, k and v, with out and lse of the forward call, are its gradients");
}

Status checkScaleRows(const Kind &kind, const CallElements &elements) {
  const int64_t rows = elements.scaleRows;
  if (rows == 0)
    return {};
  const std::string got = ", not of blocks of " + std::to_string(rows) + " rows";
  if (std::find(std::begin(kScaleRows), std::end(kScaleRows), rows) == std::end(kScaleRows))
    return Status::unsupported("serves scales of heads, or of blocks of 64 or 128 rows of q and k" + got);
  if (!kind.takesScaleRows())
    return Status::unsupported("serves scales of heads" + got +
                               "; calls of kinds forward, quantize and quantize_rotated have these");
  const bool isScaled = traitsOf(elements.q).isScaled() && elements.areAlike();
  if (isScaled || !includes(kind.find(Role::descaleQ)->access, Access::read))
    return {};
  return Status::unsupported("serves scales of blocks of rows beside q, k and v of e4m3, not beside " +
                             std::string(dtypeName(elements.q)) + ", " + dtypeName(elements.k) + " and " +
                             dtypeName(elements.v) + "; leave them scales of heads");
}

Status checkKeyMajor(const Kind &kind, const CallElements &elements) {
  const bool isScaled = traitsOf(elements.q).isScaled() && elements.areAlike();
  if (!kind.hasKeyMajorValues || isScaled || kind.find(Role::quantizedV))
    return {};
  return Status::unsupported(std::string("serves v that lies key-major beside q, k and v of e4m3, not beside ") +
                             dtypeName(elements.q) + ", " + dtypeName(elements.k) + " and " + dtypeName(elements.v) +
                             "; make v contiguous in dim");
}

KindText KindText::of(const Kind &kind, const CallElements &elements) {
  KindText text{kind, {}, {}, elements.precision, elements.scaleRows};
  if (elements.out != CallElements::outOf(elements.q))
    text.out = elements.out;
  if (elements.k != elements.q)
    text.keys = elements.k;
  return text;
}

CallElements KindText::elements(DType q) const {
  return CallElements(q, out.value_or(CallElements::outOf(q)), precision)
      .withKeys(keys.value_or(q))
      .withScaleRows(scaleRows);
}

std::string KindText::str() const {
  std::string text = kind.str();
  if (keys)
    text += suffixOf(*keys, kKeys);
  if (out)
    text += suffixOf(*out, kOut);
  text += suffixOf(precision);
  return scaleRows ? text + std::string(kScaleRowsWord) + std::to_string(scaleRows) : text;
}

Result<KindText> KindText::parse(std::string_view text) {
  KindText parsed;
  parsed.scaleRows = takeScaleRows(text);
  for (Precision precision : {Precision::tf32, Precision::fast})
    if (takeSuffix(text, suffixOf(precision))) {
      parsed.precision = precision;
      break;
    }
  parsed.out = takeElement(text, kOut);
  parsed.keys = takeElement(text, kKeys);
  HEDDLE_ASSIGN(parsed.kind, Kind::parse(text));
  return parsed;
}

} // namespace heddle
