//===- RecordedTable.h - a search space with known times --------------------===//
// Owns the text form of recorded tuning runs. Strategies are developed, compared and tested on such
// tables without a GPU. One line per point, comma-separated, the message last and free of line breaks:
//   config,outcome,median_us,spread,max_error,registers,spill_bytes,compile_seconds,message
//   block_m=64 stages=2,measured,41.7,0.01,0.002,128,0,0.45,
// The first line is the header; empty lines and lines that begin with '#' are skipped, but for facts of one word,
// "# problem: patterns/causal.mlir --seqlen=8192", which are kept. The median of a stopped row is its fastest sample.
// Times and errors are such as a measurement can give (runtime/Core/Plausible.h), also where nothing was measured.
#pragma once

#include "tests/recorded/ManualClock.h"
#include "tuner/Measure/Evaluator.h"

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace heddle::tuner {

class RecordedTable {
public:
  // A table of trials. Refused: no trials, two of one configuration, configurations that differ in
  // their knobs. The trials need `config`; their points are set from it.
  static Result<RecordedTable> create(std::string name, std::vector<PointTrial> trials);
  // Reads the text form; messages name `name` and the line.
  static Result<RecordedTable> parse(std::string name, std::string_view text);
  // Reads a file; the table's name is the path.
  static Result<RecordedTable> load(const std::string &path);
  // The text form; parse(text()) has the same trials and facts.
  std::string text() const;

  // What the table says of itself by this word; empty if nothing. Facts are one line each.
  std::string fact(const std::string &word) const;
  void setFact(const std::string &word, const std::string &text) { facts[word] = text; }

  // The space that the table spans: knobs in the order of the configurations, numbers ascending,
  // names in the order of appearance, and the constraint "recorded" that refuses points without a row.
  const SearchSpace &space() const { return recordedSpace; }
  const std::vector<PointTrial> &trials() const { return rows; }
  // Where a row of trials() stands, for messages: "t.csv:12", or the name of a table that was not read.
  std::string place(size_t row) const;
  // The recorded trial of a point; null if the table has none. Valid as long as the table.
  const PointTrial *find(const std::string &config) const;
  // The best usable trial; null if none is usable.
  const PointTrial *best() const;

private:
  explicit RecordedTable(SearchSpace space) : recordedSpace(std::move(space)) {}

  SearchSpace recordedSpace;
  std::vector<PointTrial> rows;
  std::vector<size_t> lines; // of the rows, if they were read
  std::map<std::string, size_t> rowOf;
  std::map<std::string, std::string> facts;
};

// Plays a table back: each stage ends as recorded. With a clock, a preparation takes its recorded
// seconds and a launch its time plus `launchSeconds`; with a pace they take real time. Samples scatter
// around the median within the recorded spread, the same for the same seed and the same order of calls.
class RecordedEvaluator : public Evaluator {
public:
  struct Options {
    ManualClock *clock = nullptr; // must outlive the evaluator
    double launchSeconds = 0;
    uint64_t seed = 1;
    double pace = 0; // real seconds that a recorded one takes; a preparation that is told to stop takes no more
  };

  // The table must outlive the evaluator. `space` may be any space whose texts the table knows;
  // other points fail to compile.
  RecordedEvaluator(const RecordedTable &table, const SearchSpace &space, Options options)
      : table(table), space(space), options(options) {}

  Preparation prepare(const Point &point, const std::atomic<bool> &stop) override;
  Verification verify(Candidate &candidate) override;
  Sample sample(Candidate &candidate) override;

  // How often each configuration was prepared and sampled.
  std::map<std::string, int> prepareCounts() const;
  const std::map<std::string, int> &sampleCounts() const { return sampled; }

private:
  void spend(double seconds, const std::atomic<bool> *stop = nullptr) const;

  const RecordedTable &table;
  const SearchSpace &space;
  Options options;
  mutable std::mutex mutex;
  std::map<std::string, int> prepared;
  std::map<std::string, int> sampled;
};

} // namespace heddle::tuner
