//===- CallShape.cpp --------------------------------------------------------===//
#include "runtime/Core/CallShape.h"

namespace heddle {
namespace {
constexpr std::string_view kFloatOutSuffix = "_fp32_out";
} // namespace

std::string KindText::str() const { return outFloat32 ? kind.str().append(kFloatOutSuffix) : kind.str(); }

Result<KindText> KindText::parse(std::string_view text) {
  KindText parsed;
  parsed.outFloat32 =
      text.size() > kFloatOutSuffix.size() && text.substr(text.size() - kFloatOutSuffix.size()) == kFloatOutSuffix;
  HEDDLE_ASSIGN(parsed.kind,
                Kind::parse(text.substr(0, text.size() - (parsed.outFloat32 ? kFloatOutSuffix.size() : 0))));
  return parsed;
}

} // namespace heddle
