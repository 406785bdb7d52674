#include "tests/recorded/RecordedTable.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace heddle::tuner {

namespace {

struct RecordedCandidate : Candidate {
  explicit RecordedCandidate(const PointTrial &row) : row(row) {}
  const PointTrial &row;
};

const PointTrial &rowOf(Candidate &candidate) { return static_cast<RecordedCandidate &>(candidate).row; }

// A number in [-1, 1) that depends on all its arguments.
double scatter(uint64_t seed, const std::string &config, int number) {
  uint64_t hash = seed * 0x9e3779b97f4a7c15u + uint64_t(number);
  for (unsigned char c : config)
    hash = (hash ^ c) * 0x100000001b3u;
  hash ^= hash >> 29;
  hash *= 0xbf58476d1ce4e5b9u;
  hash ^= hash >> 32;
  return double(hash >> 11) / double(uint64_t(1) << 52) - 1;
}

} // namespace

void RecordedEvaluator::spend(double seconds, const std::atomic<bool> *stop) const {
  if (options.clock)
    options.clock->advance(seconds);
  constexpr double kNap = 0.01; // until a stop is noticed
  for (double left = seconds * options.pace; left > 0 && !(stop && *stop); left -= kNap)
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, kNap)));
}

Preparation RecordedEvaluator::prepare(const Point &point, const std::atomic<bool> &stop) {
  Preparation result;
  const std::string config = space.text(point);
  {
    std::lock_guard<std::mutex> lock(mutex);
    ++prepared[config];
  }
  const PointTrial *row = table.find(config);
  if (!row) {
    result.failure = Failure{Outcome::compileFailed, "the table has no row for '" + config + "'"};
    return result;
  }
  spend(row->compileSeconds, &stop);
  result.registers = row->registers;
  result.spillBytes = row->spillBytes;
  if (row->outcome == Outcome::compileFailed || row->outcome == Outcome::spilled)
    result.failure = Failure{row->outcome, row->message};
  else
    result.candidate = std::make_shared<RecordedCandidate>(*row);
  return result;
}

Verification RecordedEvaluator::verify(Candidate &candidate) {
  const PointTrial &row = rowOf(candidate);
  spend(options.launchSeconds + row.medianUs * 1e-6);
  Verification result;
  result.maxError = row.maxError;
  if (row.outcome == Outcome::wrong || row.outcome == Outcome::launchFailed)
    result.failure = Failure{row.outcome, row.message};
  return result;
}

Sample RecordedEvaluator::sample(Candidate &candidate) {
  const PointTrial &row = rowOf(candidate);
  Sample result;
  const int number = ++sampled[row.config];
  if (row.outcome == Outcome::timedOut) {
    result.failure = Failure{row.outcome, row.message};
    return result;
  }
  result.us = row.medianUs * (1 + row.spread * scatter(options.seed, row.config, number));
  spend(options.launchSeconds + result.us * 1e-6);
  return result;
}

std::map<std::string, int> RecordedEvaluator::prepareCounts() const {
  std::lock_guard<std::mutex> lock(mutex);
  return prepared;
}

} // namespace heddle::tuner
