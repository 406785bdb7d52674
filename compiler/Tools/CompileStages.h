// Owns the list of stages behind --emit, what each one's artefact is, and the facts that --json reports of it.
#pragma once

#include "compiler/Session/CompileSession.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"

namespace heddle::cli {

/// In the order in which they are reached. Those from `config` on depend on the architecture.
enum class EmitStage { ast, analysis, schedule, config, cuda, ptx, cubin, record };

/// `name` passed the check of the option.
EmitStage parseStage(const std::string &name);
bool isBinary(EmitStage stage);

struct CompileOptions {
  PatternOptions pattern;
  ShapeOptions shape;
  std::vector<std::string> archs;
  ConfigOptions config;
  std::string emit = "cubin", output, publishedName;
  DatabaseOptions database;
  bool timing = false, json = false;

  void add(CLI::App &command);
};

/// What a stage made, what is known of it, and how long it took to get there.
struct Artefact {
  std::string bytes;
  Json facts = Json::object();
  StageTimes times;
};

/// The text of a stage before `config`; analysis is JSON if `json`.
Result<std::string> patternText(const PatternFile &file, EmitStage stage, bool json, StageTimes &times);

/// From `config` on: one architecture. Publishes the kernel as the untuned default if --db was given.
Result<Artefact> makeArtefact(const PreparedPattern &prepared, const CompileOptions &options, const KernelShape &shape);

/// One line for people: file, size, registers, shared memory.
std::string summary(const Artefact &artefact, const std::string &path);

} // namespace heddle::cli
