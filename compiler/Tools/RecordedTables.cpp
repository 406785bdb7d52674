//===- RecordedTables.cpp - tables in the place of a GPU ------------------===//
#include "compiler/Tools/Model.h"
#include "compiler/Pattern/PatternSource.h"
#include "runtime/Core/Recorded.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <set>

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;

/// A table that says what it is of.
struct NamedTable {
  tuner::RecordedTable table;
  ModelProblem problem;

  const std::string &path() const { return table.space().name(); }
  std::string gpu() const { return table.fact(kGpuFact); }
  std::string str() const { return path() + ": " + table.fact(kProblemFact) + " on " + gpu(); }
};

Result<NamedTable> named(tuner::RecordedTable table) {
  HEDDLE_ASSIGN(ModelProblem problem, problemOf(table));
  HEDDLE_TRY(deviceOf(table).status());
  return NamedTable{std::move(table), std::move(problem)};
}

/// The file, or those of a folder that say what they are of, by name.
Result<std::vector<NamedTable>> tablesAt(const std::string &path) {
  std::vector<NamedTable> tables;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    HEDDLE_ASSIGN(tuner::RecordedTable table, tuner::RecordedTable::load(path));
    HEDDLE_ASSIGN(NamedTable only, named(std::move(table)));
    tables.push_back(std::move(only));
    return tables;
  }
  std::vector<std::string> names;
  for (const fs::directory_entry &entry : fs::directory_iterator(path, error))
    if (entry.path().extension() == ".csv")
      names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  for (const std::string &name : names) {
    HEDDLE_ASSIGN(tuner::RecordedTable table, tuner::RecordedTable::load(name));
    if (table.fact(kProblemFact).empty())
      continue;
    HEDDLE_ASSIGN(NamedTable next, named(std::move(table)));
    tables.push_back(std::move(next));
  }
  if (tables.empty())
    return Status::notFound("'" + path +
                            "': no tables (*.csv) here that name a problem, as `heddle model table` writes them");
  return tables;
}

int64_t orElse(int64_t value, int64_t otherwise) { return value ? value : otherwise; }

/// What can be compared without reading a pattern.
auto numbersOf(const ModelProblem &problem) {
  const ProblemOptions &sizes = problem.problem;
  const ShapeOptions &shape = problem.shape;
  const std::string out = shape.outDtype.empty() ? shape.dtype : shape.outDtype;
  return std::make_tuple(sizes.batch, sizes.heads, orElse(sizes.kvHeads, sizes.heads), sizes.seqlen,
                         orElse(sizes.seqlenK, sizes.seqlen), shape.headDim, orElse(shape.valueDim, shape.headDim),
                         shape.dtype, out, shape.kind.name());
}

std::set<std::string> operandsOf(const ModelProblem &problem) {
  return {problem.problem.sizes.operands.begin(), problem.problem.sizes.operands.end()};
}

/// Whether the table's pattern is the same, by whatever name, and called with the same sizes.
Result<bool> isOf(const NamedTable &table, const ModelProblem &problem, const PatternFile &file,
                  const ProblemShape &shape) {
  if (numbersOf(table.problem) != numbersOf(problem) || operandsOf(table.problem) != operandsOf(problem))
    return false;
  HEDDLE_ASSIGN(std::unique_ptr<PatternFile> other, table.problem.pattern.load());
  HEDDLE_ASSIGN(const std::string digest, file.digest());
  HEDDLE_ASSIGN(const std::string otherDigest, other->digest());
  if (digest != otherDigest)
    return false;
  HEDDLE_ASSIGN(const ProblemShape otherShape, table.problem.problem.shape(*other));
  HEDDLE_ASSIGN(const KernelShape kernel, problem.shape.shape(file, baselineGpuArch()));
  HEDDLE_ASSIGN(const KernelShape otherKernel, table.problem.shape.shape(*other, baselineGpuArch()));
  return otherShape.parameters == shape.parameters && otherKernel.kind == kernel.kind;
}

std::string listOf(const std::vector<NamedTable> &tables) {
  std::string list;
  for (const NamedTable &table : tables)
    list += (list.empty() ? "" : "; ") + table.str();
  return list;
}

} // namespace

void RecordedOptions::add(CLI::App &command) {
  addValue(command, "--recorded", path, "TABLE",
           "No GPU: take times from TABLE, which `heddle model table` wrote, or from the table of a folder that "
           "is of the problem");
  addValue(command, "--recorded-gpu", gpu, "NAME", "With --recorded: the GPU whose table is taken [the only one]")
      ->needs("--recorded");
  command.add_option("--recorded-pace", pace, "With --recorded: real seconds that a recorded second takes")
      ->capture_default_str()
      ->check(realBetween(0, 1000))
      ->needs("--recorded");
}

std::vector<std::string> RecordedOptions::wordsFor(const std::string &gpuName) const {
  return {"--recorded=" + path, "--recorded-gpu=" + std::string(withoutMark(gpuName)),
          "--recorded-pace=" + std::to_string(pace)};
}

Result<ModelProblem> problemOf(const tuner::RecordedTable &table) {
  const std::string &path = table.space().name();
  const std::string text = table.fact(kProblemFact);
  if (text.empty())
    return Status::invalidArgument(path + ": expected a line '# " + kProblemFact +
                                   ": ...', as `heddle model table` writes it");
  HEDDLE_ASSIGN(ModelProblem problem, ModelProblem::parse(text));
  std::error_code error;
  const fs::path pattern = problem.pattern.file;
  fs::path folder = fs::absolute(path, error).parent_path();
  if (pattern.is_absolute() || findPattern(problem.pattern.file))
    return problem;
  while (folder.has_relative_path() && !fs::exists(folder / pattern, error))
    folder = folder.parent_path();
  if (fs::exists(folder / pattern, error))
    problem.pattern.file = (folder / pattern).string();
  return problem;
}

Result<tuner::RecordedTable> findTable(const RecordedOptions &options, const ModelProblem &problem,
                                       const PatternFile &file, const ProblemShape &shape) {
  HEDDLE_ASSIGN(std::vector<NamedTable> tables, tablesAt(options.path));
  std::vector<NamedTable> fitting;
  for (const NamedTable &table : tables) {
    HEDDLE_ASSIGN(const bool fits, isOf(table, problem, file, shape));
    if (fits && (options.gpu.empty() || options.gpu == table.gpu()))
      fitting.push_back(table);
  }
  if (fitting.size() == 1)
    return std::move(fitting.front().table);
  if (fitting.empty())
    return Status::notFound("'" + options.path + "': no recorded times of " + problem.text() +
                            (options.gpu.empty() ? "" : " on " + options.gpu) + "; there are " + listOf(tables));
  return Status::invalidArgument(
      "'" + options.path +
      "': several tables are of this problem, name one or its GPU (--recorded-gpu): " + listOf(fitting));
}

Result<std::vector<std::string>> gpusOf(const RecordedOptions &options) {
  HEDDLE_ASSIGN(std::vector<NamedTable> tables, tablesAt(options.path));
  std::set<std::string> names;
  for (const NamedTable &table : tables)
    if (options.gpu.empty() || options.gpu == table.gpu())
      names.insert(table.gpu());
  if (names.empty())
    return Status::notFound("'" + options.path + "': no recorded times on " + options.gpu + "; there are " +
                            listOf(tables));
  return std::vector<std::string>(names.begin(), names.end());
}

} // namespace heddle::cli
