// The space that a table spans, and look-ups. The text form is in RecordedText.cpp.
#include "tests/recorded/RecordedTable.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>

namespace heddle::tuner {

namespace {

using Assignments = std::vector<std::pair<std::string, std::string>>;

Assignments assignmentsOf(const std::string &config) {
  Assignments result;
  for (size_t at = config.find_first_not_of(' '); at != std::string::npos;) {
    const size_t end = std::min(config.find(' ', at), config.size());
    const std::string assignment = config.substr(at, end - at);
    const size_t equals = std::min(assignment.find('='), assignment.size());
    result.emplace_back(assignment.substr(0, equals), assignment.substr(std::min(equals + 1, assignment.size())));
    at = config.find_first_not_of(' ', end);
  }
  return result;
}

std::optional<int64_t> integerOf(const std::string &text) {
  int64_t value = 0;
  const char *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end)
    return std::nullopt;
  return value;
}

Knob knobOf(const std::string &name, const std::vector<std::string> &spellings) {
  std::vector<int64_t> numbers;
  for (const std::string &spelling : spellings)
    if (std::optional<int64_t> number = integerOf(spelling))
      numbers.push_back(*number);
  const bool areNumbers = numbers.size() == spellings.size();
  std::sort(numbers.begin(), numbers.end());
  Knob knob{name, "recorded", {}};
  for (size_t i = 0; i < spellings.size(); ++i)
    knob.values.push_back(areNumbers ? KnobValue{numbers[i], ""} : KnobValue{int64_t(i), spellings[i]});
  return knob;
}

Result<std::vector<Knob>> knobsOf(const std::string &table, const std::vector<PointTrial> &trials) {
  std::vector<std::pair<std::string, std::vector<std::string>>> columns;
  for (const auto &[name, value] : assignmentsOf(trials.front().config))
    columns.emplace_back(name, std::vector<std::string>());
  for (const PointTrial &trial : trials) {
    const Assignments assignments = assignmentsOf(trial.config);
    if (assignments.size() != columns.size())
      return Status::corrupt(table + ": '" + trial.config + "' does not have the knobs of '" + trials.front().config +
                             "'");
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto &[name, value] = assignments[i];
      if (name != columns[i].first || value.empty())
        return Status::corrupt(table + ": '" + trial.config + "' does not have the knobs of '" + trials.front().config +
                               "'");
      std::vector<std::string> &values = columns[i].second;
      if (std::find(values.begin(), values.end(), value) == values.end())
        values.push_back(value);
    }
  }
  std::vector<Knob> knobs;
  for (const auto &[name, spellings] : columns)
    knobs.push_back(knobOf(name, spellings));
  return knobs;
}

} // namespace

Result<RecordedTable> RecordedTable::create(std::string name, std::vector<PointTrial> trials) {
  if (trials.empty())
    return Status::corrupt(name + ": no trials");
  HEDDLE_ASSIGN(std::vector<Knob> knobs, knobsOf(name, trials));
  HEDDLE_ASSIGN(SearchSpace bare,
                SearchSpace::create(name, knobs, [](const Point &) { return std::optional<Refusal>(); }, {}));
  auto recorded = std::make_shared<std::set<Point>>();
  for (PointTrial &trial : trials) {
    HEDDLE_ASSIGN(trial.point, bare.parse(trial.config));
    if (!recorded->insert(trial.point).second)
      return Status::corrupt(name + ": two rows for '" + trial.config + "'");
    trial.config = bare.text(trial.point);
  }
  static const std::string kRule = "recorded";
  auto isRecorded = [recorded](const Point &point) { return recorded->count(point) > 0; };
  auto judge = [isRecorded](const Point &point) {
    return isRecorded(point) ? std::nullopt : std::optional(Refusal{kRule, "the table has no row for this point"});
  };
  auto screen = [isRecorded](const Point &point) { return isRecorded(point) ? nullptr : &kRule; };
  HEDDLE_ASSIGN(SearchSpace space, SearchSpace::create(name, std::move(knobs), judge, {kRule}, screen));
  RecordedTable table(std::move(space));
  table.rows = std::move(trials);
  for (size_t i = 0; i < table.rows.size(); ++i)
    table.rowOf[table.rows[i].config] = i;
  return table;
}

const PointTrial *RecordedTable::find(const std::string &config) const {
  auto row = rowOf.find(config);
  return row == rowOf.end() ? nullptr : &rows[row->second];
}

std::string RecordedTable::place(size_t row) const {
  const std::string &name = recordedSpace.name();
  return row < lines.size() ? name + ":" + std::to_string(lines[row]) : name;
}

std::string RecordedTable::fact(const std::string &word) const {
  auto known = facts.find(word);
  return known == facts.end() ? std::string() : known->second;
}

const PointTrial *RecordedTable::best() const {
  const PointTrial *best = nullptr;
  for (const PointTrial &row : rows)
    if (row.isUsable() && (!best || isBetter(row, *best)))
      best = &row;
  return best;
}

} // namespace heddle::tuner
