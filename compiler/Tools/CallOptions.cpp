#include "compiler/Tools/CallOptions.h"
#include "compiler/Tools/Verb.h"

#include <CLI/CLI.hpp>

namespace heddle::cli {

void CallOptions::add(CLI::App &command) {
  pattern.add(command);
  problem.add(command, /*withSeqlen=*/true);
  shape.add(command);
  config.addSkeleton(command);
}

std::string CallOptions::text() const {
  std::string text = pattern.file;
  auto add = [&](const char *option, const std::string &value) { text += " " + std::string(option) + "=" + value; };
  auto addUnless = [&](const char *option, int64_t value, int64_t usual) {
    if (value != usual)
      add(option, std::to_string(value));
  };
  const CallOptions usual;
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
  if (!shape.keyDtype.empty())
    add("--kv-dtype", shape.keyDtype);
  if (shape.precision != usual.shape.precision)
    add("--precision", precisionName(shape.precision));
  addUnless("--scale-rows", shape.scaleRows, usual.shape.scaleRows);
  if (!config.skeleton.empty())
    add("--skeleton", config.skeleton);
  return text;
}

std::vector<std::string> CallOptions::files() const {
  std::vector<std::string> files = problem.sizes.files();
  files.push_back(pattern.path());
  return files;
}

Result<CallOptions> CallOptions::parse(const std::string &text) {
  CallOptions problem;
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

int checkNames(const CallOptions &problem) {
  if (problem.pattern.file == "-")
    return Ok; // it can be read once
  const auto file = problem.pattern.load();
  if (!file)
    return failNames(file.status());
  const Status names = problem.problem.sizes.check(**file);
  return names.isOk() ? int(Ok) : failUsage(names);
}

} // namespace heddle::cli
