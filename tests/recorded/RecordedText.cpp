//===- RecordedText.cpp - reading and writing recorded tables ---------------===//
#include "runtime/Core/Plausible.h"
#include "runtime/Core/ReadFile.h"
#include "tests/recorded/RecordedTable.h"

#include <charconv>
#include <sstream>

namespace heddle::tuner {

namespace {

constexpr const char *kHeader = "config,outcome,median_us,spread,max_error,registers,spill_bytes,"
                                "compile_seconds,message";
constexpr size_t kColumns = 9;

// The columns of one line; the last takes the rest of the line, commas included.
std::vector<std::string> columnsOf(const std::string &line) {
  std::vector<std::string> columns;
  size_t at = 0;
  while (columns.size() + 1 < kColumns) {
    const size_t comma = line.find(',', at);
    if (comma == std::string::npos)
      break;
    columns.push_back(line.substr(at, comma - at));
    at = comma + 1;
  }
  columns.push_back(line.substr(at));
  return columns;
}

template <class Number> bool readNumber(const std::string &text, Number &number) {
  const char *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && number >= 0;
}

// The fewest digits that read back as the same number.
std::string shortest(double number) {
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  return error == std::errc() ? std::string(digits, end) : std::string("nan");
}

Result<PointTrial> readRow(const std::string &line) {
  const std::vector<std::string> columns = columnsOf(line);
  if (columns.size() != kColumns)
    return Status::corrupt("expected " + std::to_string(kColumns) + " columns, got " + std::to_string(columns.size()));
  PointTrial trial;
  trial.config = columns[0];
  HEDDLE_ASSIGN(trial.outcome, parseOutcome(columns[1]));
  const bool areNumbers = readNumber(columns[2], trial.medianUs) && readNumber(columns[3], trial.spread) &&
                          readNumber(columns[4], trial.maxError) && readNumber(columns[5], trial.registers) &&
                          readNumber(columns[6], trial.spillBytes) && readNumber(columns[7], trial.compileSeconds);
  if (!areNumbers)
    return Status::corrupt("expected numbers of at least 0 in columns 3 to 8");
  trial.minUs = trial.medianUs;
  std::string wrong = wrongNumbers(trial, columns[1]);
  if (wrong.empty() && !(trial.spread >= 0 && trial.spread < 1))
    wrong = "spread: expected a share of the median from 0 to below 1, got " + columns[3];
  if (!wrong.empty())
    return Status::corrupt(wrong + " (" + columns[1] + ")");
  trial.message = columns[8];
  return trial;
}

// "# word: text", or nothing.
std::optional<std::pair<std::string, std::string>> factOf(const std::string &line) {
  const size_t colon = line.find(": ");
  if (line.compare(0, 2, "# ") != 0 || colon == std::string::npos || line.find(' ', 2) < colon)
    return std::nullopt;
  return std::make_pair(line.substr(2, colon - 2), line.substr(colon + 2));
}

} // namespace

Result<RecordedTable> RecordedTable::parse(std::string name, std::string_view text) {
  std::istringstream input{std::string(text)};
  std::vector<PointTrial> trials;
  std::vector<size_t> lines;
  std::map<std::string, std::string> facts;
  std::string line;
  bool hasHeader = false;
  for (size_t number = 1; std::getline(input, line); ++number) {
    const std::string where = name + ":" + std::to_string(number) + ": ";
    if (line.empty() || line.front() == '#') {
      if (auto fact = factOf(line))
        facts.insert(std::move(*fact));
      continue;
    }
    if (!hasHeader) {
      if (line != kHeader)
        return Status::corrupt(where + "expected the header '" + kHeader + "'");
      hasHeader = true;
      continue;
    }
    Result<PointTrial> trial = readRow(line);
    if (!trial)
      return Status::corrupt(where + trial.status().message());
    trials.push_back(trial.take());
    lines.push_back(number);
  }
  HEDDLE_ASSIGN(RecordedTable table, create(std::move(name), std::move(trials)));
  table.facts = std::move(facts);
  table.lines = std::move(lines);
  return table;
}

Result<RecordedTable> RecordedTable::load(const std::string &path) {
  constexpr int64_t kMostBytes = int64_t(256) << 20;
  HEDDLE_ASSIGN(const std::string text, readTextFile(path, {"recorded table", kMostBytes}));
  return parse(path, text);
}

std::string RecordedTable::text() const {
  std::string result;
  for (const auto &[word, fact] : facts)
    result += "# " + word + ": " + fact + "\n";
  result += std::string(kHeader) + "\n";
  for (const PointTrial &row : rows)
    result += row.config + "," + outcomeName(row.outcome) + "," + shortest(row.medianUs) + "," + shortest(row.spread) +
              "," + shortest(row.maxError) + "," + std::to_string(row.registers) + "," +
              std::to_string(row.spillBytes) + "," + shortest(row.compileSeconds) + "," + row.message + "\n";
  return result;
}

} // namespace heddle::tuner
