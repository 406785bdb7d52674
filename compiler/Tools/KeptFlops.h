//===- KeptFlops.h - what a call computes on kept pairs ----------*- C++ -*-===//
// Owns the operations that rates are stated for, and how a rate that nobody knows is printed.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_TOOLS_KEPTFLOPS_H
#define HEDDLE_COMPILER_TOOLS_KEPTFLOPS_H

#include "compiler/Pattern/PatternFile.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Tools/Output.h"

#include <optional>

namespace heddle::cli {

/// Of the whole call, all batch elements as the first; none if the pairs are too many to count without a closed form.
Result<std::optional<double>> keptFlops(const PatternFile &file, const ProblemShape &shape, int64_t headDim,
                                        int64_t valueDim);

/// TFLOP/s; none where there are no operations to state.
std::optional<double> teraflops(const std::optional<double> &flops, double us);

/// With one digit after the point; a dash where there is none.
std::string rateText(const std::optional<double> &rate);
/// null where there is none.
Json rateJson(const std::optional<double> &rate);

} // namespace heddle::cli

#endif
