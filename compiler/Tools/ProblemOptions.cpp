//===- ProblemOptions.cpp - the sizes of one call on the command line -----===//
#include "compiler/Tools/ProblemOptions.h"
#include "compiler/Pattern/BindOperands.h"

#include <CLI/CLI.hpp>

#include <cmath>

namespace heddle::cli {

void ProblemOptions::add(CLI::App &command, bool withSeqlen) {
  takesCount(command.add_option("--batch", batch, "batch elements"))->capture_default_str();
  if (withSeqlen)
    takesCount(command.add_option("--seqlen", seqlen, "queries, and keys unless --seqlen-k is given"))->required();
  takesCount(command.add_option("--seqlen-k", seqlenK, "keys, if not as many as queries"));
  takesCount(command.add_option("--heads", heads, "query heads"))->capture_default_str();
  takesCount(command.add_option("--kv-heads", kvHeads, "key and value heads, if not as many as query heads"));
  sizes.add(command);
}

Result<ProblemShape> ProblemOptions::shape(const PatternFile &file) const {
  ProblemShape result;
  result.batch = batch;
  result.heads = heads;
  result.kvHeads = kvHeads ? kvHeads : heads;
  result.seqlenQ = seqlen;
  result.seqlenK = seqlenK ? seqlenK : seqlen;
  HEDDLE_ASSIGN(result.parameters, file.bindParameters(sizes.assignments));
  HEDDLE_TRY(checkShape(file, result));
  HEDDLE_TRY(bindOperands(file, {sizes.operands, {}, OperandSources::Missing::make}, result));
  return result;
}

Result<double> parseSeconds(const std::string &text) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  std::string unit = end;
  double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "ms" ? 1e-3 : 0;
  if (end == text.c_str() || factor == 0 || !(value > 0) || !std::isfinite(value))
    return Status::invalidArgument("expected --budget above 0 in seconds (30, 30s or 2m), got '" + text + "'");
  return value * factor;
}

} // namespace heddle::cli
