// Building, filtering and walking a search space. How points are written and read is in
// PointText.cpp.
#include "tuner/Space/SearchSpace.h"

#include <algorithm>
#include <limits>
#include <set>

namespace heddle::tuner {

std::optional<uint32_t> Knob::initialIndex() const {
  for (uint32_t i = 0; initial && i < values.size(); ++i)
    if (values[i].value == *initial)
      return i;
  return std::nullopt;
}

std::string Knob::spelling(size_t index) const {
  const KnobValue &value = values[index];
  return value.name.empty() ? std::to_string(value.value) : value.name;
}

namespace {

bool isWord(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Status checkKnob(const Knob &knob) {
  if (!isWord(knob.name))
    return Status::invalidArgument("search space: knob name '" + knob.name +
                                   "' is not made of letters, digits and '_'");
  if (knob.values.empty())
    return Status::invalidArgument("search space: knob '" + knob.name + "' has no values");
  std::set<std::string> spellings;
  std::set<int64_t> numbers;
  for (size_t i = 0; i < knob.values.size(); ++i) {
    const std::string spelling = knob.spelling(i);
    if (!knob.values[i].name.empty() && !isWord(spelling))
      return Status::invalidArgument("search space: value '" + spelling + "' of knob '" + knob.name +
                                     "' is not made of letters, digits and '_'");
    if (!spellings.insert(spelling).second || !numbers.insert(knob.values[i].value).second)
      return Status::invalidArgument("search space: knob '" + knob.name + "' has the value '" + spelling + "' twice");
  }
  return Status();
}

/// Moves to the next point in lexicographic order; false after the last one.
bool advance(Point &point, const std::vector<Knob> &knobs) {
  for (size_t i = knobs.size(); i-- > 0;) {
    if (++point.index[i] < knobs[i].values.size())
      return true;
    point.index[i] = 0;
  }
  return false;
}

// The counter of a name, added if the names did not announce it.
uint64_t &countOf(std::vector<std::pair<std::string, uint64_t>> &counts, const std::string &name) {
  auto entry =
      std::find_if(counts.begin(), counts.end(), [&](const auto &candidate) { return candidate.first == name; });
  if (entry == counts.end())
    entry = counts.emplace(counts.end(), name, 0);
  return entry->second;
}

} // namespace

Result<SearchSpace> SearchSpace::create(std::string name, std::vector<Knob> knobs, Judge judge,
                                        std::vector<std::string> constraintNames, Screen screen) {
  if (knobs.empty() || !judge)
    return Status::invalidArgument("search space '" + name + "': " + (judge ? "no knobs" : "no judge"));
  std::set<std::string> names;
  for (const Knob &knob : knobs) {
    HEDDLE_TRY(checkKnob(knob));
    if (!names.insert(knob.name).second)
      return Status::invalidArgument("search space: knob '" + knob.name + "' is given twice");
  }
  SearchSpace space;
  space.spaceName = std::move(name);
  space.knobList = std::move(knobs);
  space.judge = std::move(judge);
  space.screen = std::move(screen);
  space.constraintNameList = std::move(constraintNames);
  return space;
}

uint64_t SearchSpace::rawSize() const {
  constexpr uint64_t most = std::numeric_limits<uint64_t>::max();
  uint64_t size = 1;
  for (const Knob &knob : knobList) {
    if (size > most / knob.values.size())
      return most;
    size *= knob.values.size();
  }
  return size;
}

std::optional<size_t> SearchSpace::knobIndex(std::string_view knob) const {
  for (size_t i = 0; i < knobList.size(); ++i)
    if (knobList[i].name == knob)
      return i;
  return std::nullopt;
}

bool SearchSpace::contains(const Point &point) const {
  if (point.index.size() != knobList.size())
    return false;
  for (size_t i = 0; i < knobList.size(); ++i)
    if (point.index[i] >= knobList[i].values.size())
      return false;
  return true;
}

std::optional<std::string> SearchSpace::whyInfeasible(const Point &point) const {
  if (!contains(point))
    return "space: the point is not one of search space '" + spaceName + "'";
  if (std::optional<Refusal> refusal = judge(point))
    return refusal->constraint + ": " + refusal->reason;
  return std::nullopt;
}

Result<Enumeration> SearchSpace::enumerate() const {
  if (rawSize() > kMaxExamined)
    return Status::invalidArgument("search space '" + spaceName + "' has " + std::to_string(rawSize()) +
                                   " points, at most " + std::to_string(kMaxExamined) +
                                   " can be walked; give fewer values");
  Enumeration result;
  for (const std::string &constraint : constraintNameList)
    result.refused.emplace_back(constraint, 0);
  Point point{std::vector<uint32_t>(knobList.size(), 0)};
  do {
    ++result.examined;
    std::optional<Refusal> refusal;
    const std::string *rule = screen ? screen(point) : nullptr;
    if (!screen && (refusal = judge(point)))
      rule = &refusal->constraint;
    if (rule)
      ++countOf(result.refused, *rule);
    else
      result.points.push_back(point);
  } while (advance(point, knobList));
  return result;
}

} // namespace heddle::tuner
