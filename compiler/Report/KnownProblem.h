// Owns what can be said of rows once somebody gives the text of their pattern, of which a database has the digest:
// rates, the roof, estimates and the default follow from it and the lengths.
#pragma once

#include "compiler/Session/KernelShape.h"
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Pattern/ProblemKey.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace heddle::report {

struct KnownProblem {
  std::shared_ptr<const PatternFile> file; ///< never null
  ProblemShape shape;                      ///< passed checkShape
  KernelShape kernel;                      ///< its architecture does not matter
};

/// What a call computes, and how fast a GPU could be at best.
struct Rates {
  std::optional<double> flops;  ///< 2 (head_dim + value_dim) for each kept pair of the whole call
  std::optional<double> roofUs; ///< by the data sheet of the GPU
  bool isComputeBound = true;   ///< else memory traffic is what the roof is of
  std::string note;             ///< why something is missing; empty if nothing is
};

struct Estimates {
  std::vector<double> us;         ///< of each trial; 0: not estimated
  std::optional<double> spearman; ///< over the trials that have both a time and an estimate
  std::string basis;              ///< where they come from, or why there are none
  std::string winnerConfig;       ///< what a trial of the winner's configuration is called; empty: unknown
  std::string defaultConfig;      ///< what a trial of the default configuration is called; empty: unknown
};

/// The median, or the fastest sample of a trial that was given up; 0 if there is neither.
double timeOf(const Trial &trial);

class PreparedProblem {
public:
  /// Fails as preparePattern does.
  static Result<PreparedProblem> create(KnownProblem problem);

  std::string patternName() const { return attn::PatternOp(problem.file->pattern()).getSymName().str(); }
  /// Rows of this key are of the call, whatever wrote them.
  bool isOf(const WinnerKey &key) const;
  Rates ratesOn(const DeviceIdentity &device) const;
  /// The trials are of one session on that GPU; `winner`: KernelRecord::config, or empty.
  Estimates estimatesOf(const std::vector<Trial> &trials, const DeviceIdentity &device,
                        const std::string &winner) const;

private:
  PreparedProblem(KnownProblem problem, PreparedPattern prepared, KernelFamily family)
      : problem(std::move(problem)), prepared(std::move(prepared)), family(std::move(family)) {}
  KnownProblem problem;
  PreparedPattern prepared;
  KernelFamily family;
};

} // namespace heddle::report
