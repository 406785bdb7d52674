#include "runtime/Core/Digest.h"
#include "tuner/Space/SearchSpace.h"

#include <algorithm>

namespace heddle::tuner {

std::string SearchSpace::text(const Point &point) const {
  std::string result;
  for (size_t i = 0; i < knobList.size(); ++i)
    result += (i ? " " : "") + knobList[i].name + "=" + knobList[i].spelling(point.index[i]);
  return result;
}

Status SearchSpace::assign(std::string_view assignment, Point &point, std::vector<bool> &isGiven) const {
  const std::string where = "point: '" + std::string(assignment) + "': ";
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos)
    return Status::invalidArgument(where + "expected <knob>=<value>");
  const std::optional<size_t> index = knobIndex(assignment.substr(0, equals));
  if (!index)
    return Status::invalidArgument(where + "search space '" + spaceName + "' has no such knob");
  if (isGiven[*index])
    return Status::invalidArgument(where + "the knob is given twice");
  const Knob &knob = knobList[*index];
  std::string known;
  for (uint32_t i = 0; i < knob.values.size(); ++i) {
    const std::string spelling = knob.spelling(i);
    if (spelling == assignment.substr(equals + 1)) {
      point.index[*index] = i;
      isGiven[*index] = true;
      return Status();
    }
    known += (i ? ", " : "") + spelling;
  }
  return Status::invalidArgument(where + "expected one of " + known);
}

Result<Point> SearchSpace::parse(std::string_view text) const {
  Point point{std::vector<uint32_t>(knobList.size(), 0)};
  std::vector<bool> isGiven(knobList.size(), false);
  for (size_t at = text.find_first_not_of(' '); at != std::string_view::npos;) {
    const size_t end = std::min(text.find(' ', at), text.size());
    HEDDLE_TRY(assign(text.substr(at, end - at), point, isGiven));
    at = text.find_first_not_of(' ', end);
  }
  for (size_t i = 0; i < knobList.size(); ++i) {
    if (isGiven[i])
      continue;
    const std::optional<uint32_t> initial = knobList[i].initialIndex();
    if (!initial)
      return Status::invalidArgument("point: no value for knob '" + knobList[i].name + "' in '" + std::string(text) +
                                     "'");
    point.index[i] = *initial;
  }
  return point;
}

std::string SearchSpace::digest(const Point &point) const {
  std::vector<std::string> assignments;
  for (size_t i = 0; i < knobList.size(); ++i)
    if (knobList[i].initialIndex() != point.index[i])
      assignments.push_back(knobList[i].name + "=" + knobList[i].spelling(point.index[i]));
  std::sort(assignments.begin(), assignments.end());
  std::string sorted;
  for (const std::string &assignment : assignments)
    sorted += assignment + ";";
  return sha256Hex(sorted);
}

} // namespace heddle::tuner
