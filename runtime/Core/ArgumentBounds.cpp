#include "runtime/Core/ArgumentBounds.h"
#include "runtime/Core/CountText.h"

namespace heddle {
namespace {

std::string num(int64_t value) { return std::to_string(value); }

std::string nameOf(const ArgumentBound &bound, const std::vector<std::string> &names) {
  if (size_t(bound.argument) >= names.size())
    return (bound.unit.empty() ? "run-time size number " : "tensor number ") + num(bound.argument);
  return bound.unit.empty() ? names[size_t(bound.argument)] : "tensor '" + names[size_t(bound.argument)] + "'";
}

// "at least 2 entries", "1 to 64 draft tokens", "4 entries"
std::string expectation(const ArgumentBound &bound, int64_t least, int64_t most) {
  const bool isOpen = most == ArgumentBound::kNoMost;
  const std::string numbers = isOpen          ? "at least " + num(least)
                              : least == most ? num(most)
                                              : num(least) + " to " + num(most);
  return numbers + " " + nounFor(isOpen ? least : most, bound.unit) + (bound.reason.empty() ? "" : ", " + bound.reason);
}

Status outOfBounds(const ArgumentBound &bound, const std::string &name, int64_t least, int64_t most, int64_t value) {
  const std::string got = ", got " + num(value);
  if (!bound.unit.empty())
    return Status::invalidArgument(name + ": expected " + expectation(bound, least, most) + got);
  return Status::invalidArgument("expected " + name + (value < least ? " >= " + num(least) : " <= " + num(most)) + got);
}

} // namespace

uint64_t ArgumentBound::argumentsRead() const { return value.paramMask() | least.paramMask() | most.paramMask(); }

Status checkBounds(const std::vector<ArgumentBound> &bounds, const LaunchSymbols &symbols, uint64_t given,
                   const std::vector<std::string> &names) {
  for (const ArgumentBound &bound : bounds) {
    if ((bound.argumentsRead() & ~given) != 0)
      continue;
    HEDDLE_ASSIGN(const int64_t value, bound.value.evaluate(symbols));
    HEDDLE_ASSIGN(const int64_t least, bound.least.evaluate(symbols));
    HEDDLE_ASSIGN(const int64_t most, bound.most.evaluate(symbols));
    if (value < least || value > most)
      return outOfBounds(bound, nameOf(bound, names), least, most, value);
  }
  return {};
}

} // namespace heddle
