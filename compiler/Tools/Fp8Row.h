// Owns what e4m3 gains: the forward kernel of bf16, the kernel that quantises, that of e4m3, and these two behind each
// other, in turn in one process; the kernel of e4m3 against the definition of what it read, and its out against that of
// bf16 before anything was quantised.
#pragma once

#include "compiler/Measure/MatrixRoof.h"
#include "compiler/Tools/BenchLaunch.h"
#include "compiler/Tools/Output.h"

#include <optional>

namespace heddle::cli {

struct Fp8Row {
  std::string pattern, match, config;                    ///< of the kernel of e4m3
  Workload workload;                                     ///< of e4m3
  double us = 0, bf16Us = 0, quantizeUs = 0, bothUs = 0; ///< medians
  double roofUs = 0;                                     ///< 0 if there was no matrix product
  std::optional<double> flops;                           ///< on kept pairs
  double rmsError = 0;                                   ///< of out, relative to that of bf16
  bool isRotated = false;                                ///< what is quantised, first
  int64_t missing = 0;                                   ///< elements of results that were NaN
  oracle::KindReport verified;

  bool isRight() const { return verified.isOk() && missing == 0; }
  std::optional<double> tflops() const { return teraflops(flops, us); }
  /// Of the bf16 matrix product's rate, in percent; none without a roof.
  std::optional<double> percentOfRoof() const;
};

/// `setup`: of the workload in e4m3. What is in bf16 has the defaults, or what the database knows. `rotates`: q and k are
/// rotated before they are quantised.
Result<Fp8Row> measureFp8(const BenchSetup &setup, bool rotates, MatrixRoof *roof);

void printRow(const Fp8Row &row, bool withHeader);
Json rowsJson(const std::vector<Fp8Row> &rows, const std::string &device);

} // namespace heddle::cli
