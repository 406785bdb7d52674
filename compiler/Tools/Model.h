//===- Model.h - the operations of heddle model -----------------*- C++ -*-===//
// Owns what the operations of `heddle model` share: the options that say which problem is meant. A recorded table keeps
// them as text, and they are read back from there.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Session/RecordedTune.h"
#include "compiler/Session/TuneSpace.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Verb.h"

namespace heddle::cli {

/// What a recorded table says of itself, beside the GPU (compiler/Session/RecordedTune.h).
inline constexpr const char *kProblemFact = "problem";

/// A pattern, a call and the kernels that may serve it.
struct ModelProblem {
  PatternOptions pattern;
  ProblemOptions problem;
  ShapeOptions shape;
  ConfigOptions config;

  void add(CLI::App &command);
  /// As `add` takes it, on one line.
  std::string text() const;
  /// What is read of it: the pattern, its tensors.
  std::vector<std::string> files() const;
  /// The inverse. invalidArgument: what the options do not take.
  static Result<ModelProblem> parse(const std::string &text);
};

/// Says what the problem names and there is not: pattern, sizes, tensors. Ok, or the exit code.
int checkNames(const ModelProblem &problem);

/// What a problem stands for on GPUs of one architecture.
struct LoadedProblem {
  std::unique_ptr<PatternFile> file;
  ProblemShape shape;
  std::shared_ptr<const TuneSpace> space;
};
Result<LoadedProblem> loadProblem(const ModelProblem &problem, const GpuArch &arch);

Action addModelTable(CLI::App &command);
Action addModelFit(CLI::App &command);
Action addModelPredict(CLI::App &command);

// Owns --recorded and its relatives, and which of a folder's tables is of the problem at hand.

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
