// Owns the measurement of one workload: lookup, launches in turn with the matrix product, comparison with the
// definition.
#pragma once

#include "compiler/Measure/MatrixRoof.h"
#include "compiler/Tools/BenchLaunch.h"
#include "compiler/Tools/Output.h"
#include "compiler/Views/Explanation.h"

#include <optional>

namespace heddle::cli {

/// The kernel of the same gradients whose bits may depend on the run, timed in turn with the one that is measured.
struct OtherOrder {
  Kind kind;
  std::string config;
  std::optional<double> us; ///< median; none where its bits do not depend on the run either
};

struct BenchRow {
  std::string pattern, match, config;
  Workload workload;
  double us = 0, roofUs = 0;   ///< medians; roofUs 0 if there was no roof
  std::optional<double> flops; ///< on kept pairs, whole call; none if they are too many to count without a closed form
  std::optional<double> visitedFlops; ///< on the pairs of visited tiles, as the kernel's own tile shape counts them
  int64_t missing = 0;                ///< elements of results that were NaN
  views::WorkspaceExplanation workspace;
  std::optional<OtherOrder> inAnyOrder; ///< of deterministic kinds
  oracle::KindReport verified;

  bool isRight() const { return verified.isOk() && missing == 0; }
  std::optional<double> tflops() const;
  /// Percent of the matrix product's rate; none without a roof.
  std::optional<double> percentOfRoof() const;
  std::optional<double> visitedPercentOfRoof() const;
  /// What the same bits in every run cost, in percent of the other kernel's time.
  std::optional<double> priceOfDeterminism() const;
};

Result<BenchRow> measure(const BenchSetup &setup, MatrixRoof *roof);

void printRow(const BenchRow &row, bool withHeader);
/// What was called, as every row says it.
Json callJson(const std::string &pattern, const Workload &workload);
Json rowsJson(const std::vector<BenchRow> &rows, const std::string &device);

} // namespace heddle::cli
