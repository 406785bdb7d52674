//===- model.cpp - heddle model -------------------------------------------===//
// The estimate of a kernel's time: made from recorded trials, judged, asked. None of it needs a GPU.
//===----------------------------------------------------------------------===//
#include "compiler/Tools/Model.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/PreparedPattern.h"

#include <CLI/CLI.hpp>

namespace heddle::cli {

void ModelProblem::add(CLI::App &command) {
  pattern.add(command);
  problem.add(command, /*withSeqlen=*/true);
  shape.add(command);
  config.addSkeleton(command);
}

std::string ModelProblem::text() const {
  std::string text = pattern.file;
  auto add = [&](const char *option, const std::string &value) { text += " " + std::string(option) + "=" + value; };
  auto addUnless = [&](const char *option, int64_t value, int64_t usual) {
    if (value != usual)
      add(option, std::to_string(value));
  };
  const ModelProblem usual;
  if (!pattern.name.empty())
    add("--pattern", pattern.name);
  addUnless("--batch", problem.batch, usual.problem.batch);
  addUnless("--heads", problem.heads, usual.problem.heads);
  addUnless("--kv-heads", problem.kvHeads, usual.problem.kvHeads);
  add("--seqlen", std::to_string(problem.seqlen));
  addUnless("--seqlen-k", problem.seqlenK, usual.problem.seqlenK);
  for (const std::string &assignment : problem.sizes.assignments)
    add("--set", assignment);
  for (const std::string &operand : problem.sizes.operands)
    add("--operand", operand);
  add("--head-dim", std::to_string(shape.headDim));
  addUnless("--value-dim", shape.valueDim, usual.shape.valueDim);
  if (shape.kind != usual.shape.kind)
    add("--kind", shape.kind.name());
  for (const std::string &name : shape.gradientsOf.names)
    add("--gradients-of", name);
  if (shape.dtype != usual.shape.dtype)
    add("--dtype", shape.dtype);
  if (!shape.outDtype.empty())
    add("--out-dtype", shape.outDtype);
  if (!config.skeleton.empty())
    add("--skeleton", config.skeleton);
  return text;
}

std::vector<std::string> ModelProblem::files() const {
  std::vector<std::string> files = problem.sizes.files();
  files.push_back(pattern.path());
  return files;
}

Result<ModelProblem> ModelProblem::parse(const std::string &text) {
  ModelProblem problem;
  CLI::App app;
  problem.add(app);
  try {
    app.parse(text);
  } catch (const CLI::Error &error) {
    return Status::invalidArgument("problem '" + text + "': " + error.what());
  }
  HEDDLE_TRY(problem.shape.check());
  return problem;
}

int checkNames(const ModelProblem &problem) {
  if (problem.pattern.file == "-")
    return Ok; // it can be read once
  const auto file = problem.pattern.load();
  if (!file)
    return failNames(file.status());
  const Status names = problem.problem.sizes.check(**file);
  return names.isOk() ? int(Ok) : failUsage(names);
}

Result<LoadedProblem> loadProblem(const ModelProblem &problem, const GpuArch &arch) {
  LoadedProblem loaded;
  HEDDLE_ASSIGN(loaded.file, problem.pattern.load());
  HEDDLE_ASSIGN(loaded.shape, problem.problem.shape(*loaded.file));
  HEDDLE_ASSIGN(PreparedPattern prepared, preparePattern(*loaded.file));
  HEDDLE_ASSIGN(KernelShape shape, problem.shape.shape(*loaded.file, arch));
  shape.queries = loaded.shape.seqlenQ;
  HEDDLE_ASSIGN(loaded.space, TuneSpace::create(std::move(prepared), shape, problem.config.skeleton));
  return loaded;
}

namespace {

constexpr Verb kOperations[] = {
    {"table", "Write what a database has tried for one problem as a table", addModelTable},
    {"fit", "Make the parameters of the estimate from tables, and judge it", addModelFit},
    {"predict", "List the fastest configurations by the estimate, for any GPU", addModelPredict},
};

} // namespace

Action addModel(CLI::App &command) { return addOperations(command, {std::begin(kOperations), std::end(kOperations)}); }

} // namespace heddle::cli
