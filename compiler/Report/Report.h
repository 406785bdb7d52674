//===- Report.h - what a database says, for people --------------*- C++ -*-===//
// Owns the contents of `heddle report`: every workload of a database with its winner, its trials and what is known of
// them, and the comparisons between GPUs and databases. What is not known is left out and said why; nothing is guessed.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_REPORT_REPORT_H
#define HEDDLE_COMPILER_REPORT_REPORT_H

#include "compiler/Report/KnownProblem.h"
#include "runtime/Store/Store.h"

#include <nlohmann/json.hpp>

#include <map>

namespace heddle::report {

/// Keys keep the order in which they were written.
using Json = nlohmann::ordered_json;

/// One problem of one kernel family on one GPU: a winner, the trials of its session, or both.
struct Workload {
  WinnerKey key;
  std::optional<Winner> winner;
  KernelRecord kernel;               ///< of the winner, without code
  MatchKind match = MatchKind::none; ///< what a launch with this key is given
  std::vector<Trial> trials;         ///< oldest first, as Store::allTrials has them

  std::string pattern;     ///< its name, else the start of its digest
  std::string problem;     ///< the call as it was given, else as the database has it
  std::string problemNote; ///< why the call's pattern is not known; empty if it is
  std::string group;       ///< equal for the same problem on other GPUs
  Rates rates;
  Estimates estimates;
  std::optional<size_t> defaultTrial; ///< which of `trials` is the untuned default
  std::string defaultNote;            ///< why there is none

  /// Microseconds of the winner, else of the fastest trial; 0 if nothing was measured.
  double us() const;
  std::optional<double> tflops() const;
  std::optional<double> percentOfRoof() const;
  /// Time of the default over that of the winner; none unless both have one.
  std::optional<double> gain() const;
};

/// A key that only one of two databases has a winner for, or both.
struct Comparison {
  enum class Kind { faster, slower, alike, untimed, onlyHere, onlyThere };
  Kind kind;
  std::optional<Winner> here, there;
  std::string configHere, configThere;
  double ratio = 0;    ///< time there over time here; 0 unless both were measured
  std::string problem; ///< as Workload::problem; makeReport knows it

  const Winner &either() const { return here ? *here : *there; }
};
struct Comparisons {
  std::vector<Comparison> rows; ///< by kind
  int64_t equal = 0;            ///< winners that are the same in both, with the same time
};
const char *comparisonName(Comparison::Kind kind);
/// Ratios this close to 1 count as alike: two measurements of one kernel differ by as much.
inline constexpr double kAlike = 0.01;

/// A known call that no row of the database is of, on one of its GPUs.
struct Unserved {
  std::string problem, pattern;
  DeviceIdentity device;
  MatchKind match = MatchKind::none;
  double us = 0; ///< of the kernel that it would be given, for whatever that was tuned for; 0 if untuned
};

struct Report {
  std::vector<std::string> databases;
  std::string against;                      ///< empty: none
  std::map<std::string, std::string> names; ///< of patterns, by digest
  std::vector<DeviceIdentity> devices;
  std::vector<Workload> workloads; ///< by pattern, problem and GPU
  std::vector<Unserved> unserved;
  Comparisons comparisons;
};

struct ReportRequest {
  const Store *store = nullptr;       ///< never null
  const Store *against = nullptr;     ///< or null
  std::vector<std::string> databases; ///< what the store was made of
  std::vector<KnownProblem> problems;
  std::map<std::string, std::string> patternFiles; ///< of digests, for patterns that the store has no name for
};

/// notFound: the store has neither winners nor trials. Otherwise as reading the stores and preparing the patterns fail.
Result<Report> makeReport(const ReportRequest &request);

/// Winners of the two stores by key. Keys that differ in the generator only are one where that is unambiguous: an
/// upgrade is what databases are compared for.
Result<Comparisons> compareWinners(const Store &here, const Store &there);

/// Whole: `heddle report --json` prints it, and the page is drawn from it.
Json reportJson(const Report &report);

} // namespace heddle::report

#endif
