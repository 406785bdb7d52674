//===- RecordedTables.h - tables in the place of a GPU ----------*- C++ -*-===//
// Owns --recorded and its relatives, and which of a folder's tables is of the problem at hand.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_TOOLS_RECORDEDTABLES_H
#define HEDDLE_COMPILER_TOOLS_RECORDEDTABLES_H

#include "compiler/Session/RecordedTune.h"
#include "compiler/Tools/Model.h"

namespace heddle::cli {

struct RecordedOptions {
  std::string path, gpu;
  double pace = 0;
  void add(CLI::App &command);
  bool isGiven() const { return !path.empty(); }
  /// For a process of its own that tunes on one of the GPUs.
  std::vector<std::string> wordsFor(const std::string &gpuName) const;
};

/// The problem that a table says it is of. Its pattern file is looked for as it was named when the table was written,
/// then likewise in the folders above the table. invalidArgument: it names none.
Result<ModelProblem> problemOf(const tuner::RecordedTable &table);

/// The table of `problem`, which is `file` called with `shape`: the file that is named, or the one of a folder.
/// notFound: the table is of another problem or GPU, or no table is of this one, and the message lists what there is.
/// invalidArgument: several are.
Result<tuner::RecordedTable> findTable(const RecordedOptions &options, const ModelProblem &problem,
                                       const PatternFile &file, const ProblemShape &shape);

/// The names of the GPUs that the tables are of, each once. notFound: there are no tables.
Result<std::vector<std::string>> gpusOf(const RecordedOptions &options);

} // namespace heddle::cli

#endif
