#include "compiler/Pattern/BindWords.h"
#include "dialect/IR/RealWord.h"

using namespace mlir;

namespace heddle {

static Status checkBounds(attn::PatternOp pattern, unsigned index, int64_t word) {
  const std::string name = pattern.getParameterName(index).str(),
                    got = ", got " + pattern.getParameterText(index, word);
  auto text = [](double bound) {
    SmallString<16> digits;
    APFloat(static_cast<float>(bound)).toString(digits);
    return digits.str().str();
  };
  if (!pattern.isRealParameter(index)) {
    int64_t least = pattern.getParameterMinimum(index);
    return word >= least ? Status()
                         : Status::invalidArgument("expected " + name + " >= " + std::to_string(least) + got);
  }
  double value = attn::realOfWord(word), least = pattern.getRealMinimum(index), most = pattern.getRealMaximum(index);
  if (value < least)
    return Status::invalidArgument("expected " + name + " >= " + text(least) + got);
  return value <= most ? Status() : Status::invalidArgument("expected " + name + " <= " + text(most) + got);
}

Result<std::vector<int64_t>> bindWords(attn::PatternOp pattern, const std::vector<std::optional<int64_t>> &given) {
  std::vector<int64_t> words;
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i) {
    if (pattern.isOperand(i)) {
      words.push_back(0);
      continue;
    }
    const std::optional<int64_t> word = given[i] ? given[i] : pattern.getParameterDefault(i);
    const std::string name = pattern.getParameterName(i).str();
    if (!word)
      return Status::invalidArgument("size '" + name + "' has no default: give it with --set " + name + "=NUMBER");
    HEDDLE_TRY(checkBounds(pattern, i, *word));
    words.push_back(*word);
  }
  return words;
}

} // namespace heddle
