//===- ReportInputs.cpp - what a report is told beside databases ----------===//
#include "compiler/Tools/ReportInputs.h"
#include "compiler/Plan/WorkPlan.h"
#include "compiler/Tools/Messages.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;

ModelProblem problemOf(const TuneItem &item) {
  ModelProblem problem;
  problem.pattern.file = item.pattern.file;
  problem.pattern.name = item.pattern.pattern;
  problem.problem.batch = item.problem.batch;
  problem.problem.heads = item.problem.heads;
  // as one leaves them out
  problem.problem.kvHeads = item.problem.kvHeads == item.problem.heads ? 0 : item.problem.kvHeads;
  problem.problem.seqlen = item.problem.seqlenQ;
  problem.problem.seqlenK = item.problem.seqlenK == item.problem.seqlenQ ? 0 : item.problem.seqlenK;
  problem.problem.sizes.assignments = item.pattern.sizes;
  problem.shape.headDim = item.dims.head;
  problem.shape.valueDim = item.dims.value;
  problem.shape.dtype = dtypeName(item.dtype);
  return problem;
}

/// "2x32[8]x8192 left=1023", without what a row of the report says elsewhere.
std::string labelOf(const ModelProblem &problem) {
  const ProblemOptions &call = problem.problem;
  std::string text = std::to_string(call.batch) + "x" + std::to_string(call.heads);
  if (call.kvHeads && call.kvHeads != call.heads)
    text += "[" + std::to_string(call.kvHeads) + "]";
  text += "x" + std::to_string(call.seqlen);
  if (call.seqlenK && call.seqlenK != call.seqlen)
    text += "x" + std::to_string(call.seqlenK);
  for (const std::string &assignment : call.sizes.assignments)
    text += " " + assignment;
  return text;
}

Result<report::KnownProblem> known(const ModelProblem &problem) {
  report::KnownProblem result;
  HEDDLE_ASSIGN(result.file, problem.pattern.load());
  HEDDLE_ASSIGN(result.shape, problem.problem.shape(*result.file));
  result.kernel = problem.shape.shape(baselineGpuArch());
  result.label = labelOf(problem);
  return result;
}

} // namespace

void ReportInputs::add(CLI::App &command) {
  command
      .add_option(
          "--plan", plans,
          "Plan of the sweep: says which calls were tuned, for rates, roof, estimates and defaults; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      .add_option("--problem", texts,
                  "One such call, \"FILE --batch=2 --heads=16 --seqlen=8192 --head-dim=128\"; may be repeated")
      ->type_name("CALL")
      ->allow_extra_args(false);
  command
      .add_option("--patterns", patternFolder,
                  "Folder of pattern files, which name patterns that the database has no name for")
      ->type_name("DIR");
}

Result<std::vector<ReportInputs::Wanted>> ReportInputs::wanted() const {
  std::vector<Wanted> wanted;
  for (const std::string &path : plans) {
    HEDDLE_ASSIGN(WorkPlan plan, WorkPlan::load(path));
    for (const TuneItem &item : plan.tuneItems())
      wanted.push_back({problemOf(item), item.gpu});
  }
  for (const std::string &text : texts) {
    HEDDLE_ASSIGN(ModelProblem problem, ModelProblem::parse(text));
    wanted.push_back({std::move(problem), ""});
  }
  return wanted;
}

Result<std::vector<std::string>> ReportInputs::files() const {
  std::vector<std::string> files = plans;
  HEDDLE_ASSIGN(std::vector<Wanted> problems, wanted());
  for (const Wanted &one : problems)
    for (const std::string &file : one.problem.files())
      files.push_back(file);
  HEDDLE_ASSIGN(std::vector<std::string> named, filesOfFolder());
  files.insert(files.end(), named.begin(), named.end());
  return files;
}

Result<std::vector<report::KnownProblem>> ReportInputs::problems() const {
  HEDDLE_ASSIGN(std::vector<Wanted> wanted, this->wanted());
  std::vector<report::KnownProblem> result;
  std::map<std::string, size_t> places; // a plan has an item once for every GPU
  for (const auto &[problem, gpu] : wanted) {
    const auto [place, isNew] = places.emplace(problem.text(), result.size());
    if (isNew) {
      HEDDLE_ASSIGN(report::KnownProblem one, known(problem));
      one.gpus.push_back(gpu);
      result.push_back(std::move(one));
    } else {
      result[place->second].gpus.push_back(gpu);
    }
  }
  for (report::KnownProblem &problem : result) // asked for on any GPU is more than on some
    if (std::find(problem.gpus.begin(), problem.gpus.end(), "") != problem.gpus.end())
      problem.gpus.clear();
  return result;
}

static Status addNames(const std::string &path, std::map<std::string, std::string> &names) {
  HEDDLE_ASSIGN(std::string text, PatternFile::readText(path));
  Status failure;
  HEDDLE_TRY(PatternFile::forEach(text, path, [&](const PatternFile &file) {
    Result<std::string> digest = file.digest();
    if (digest)
      names.emplace(*digest, attn::PatternOp(file.pattern()).getSymName().str());
    else if (failure.isOk())
      failure = digest.status();
  }));
  return failure;
}

Result<std::vector<std::string>> ReportInputs::filesOfFolder() const {
  std::vector<std::string> files;
  if (patternFolder.empty())
    return files;
  std::error_code failed;
  for (const fs::directory_entry &entry : fs::directory_iterator(patternFolder, failed))
    if (entry.path().extension() == ".mlir")
      files.push_back(entry.path().string());
  if (failed)
    return Status::notFound("--patterns '" + patternFolder + "': " + failed.message());
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::map<std::string, std::string>> ReportInputs::patternFiles() const {
  std::map<std::string, std::string> names;
  HEDDLE_ASSIGN(std::vector<std::string> files, filesOfFolder());
  for (const std::string &file : files)
    if (Status status = addNames(file, names); !status.isOk())
      warn(status.message() + "; '" + file + "' names nothing");
  return names;
}

} // namespace heddle::cli
