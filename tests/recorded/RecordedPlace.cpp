//===- RecordedPlace.cpp - tables in the place of GPUs --------------------===//
// Linked in the stead of compiler/Session/TuneHere.cpp: $HEDDLE_RECORDED names a table, or a folder of tables, that searches
// get their times from; $HEDDLE_RECORDED_PACE is the real seconds that a recorded second takes, 0 without it.
//===----------------------------------------------------------------------===//
#include "compiler/Pattern/PatternSource.h"
#include "compiler/Session/TuneHere.h"
#include "compiler/Tools/CallOptions.h"
#include "tests/recorded/RecordedTune.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

namespace heddle {
namespace {

namespace fs = std::filesystem;
using cli::CallOptions;

/// A table that says what it is of.
struct NamedTable {
  tuner::RecordedTable table;
  CallOptions call;
};

/// The call that a table says it is of. Its pattern file is looked for as it was named when the table was written, then
/// likewise in the folders above the table.
Result<CallOptions> callOf(const tuner::RecordedTable &table) {
  const std::string &path = table.space().name();
  HEDDLE_ASSIGN(CallOptions call, CallOptions::parse(table.fact("problem")));
  std::error_code error;
  const fs::path pattern = call.pattern.file;
  fs::path folder = fs::absolute(path, error).parent_path();
  if (pattern.is_absolute() || findPattern(call.pattern.file))
    return call;
  while (folder.has_relative_path() && !fs::exists(folder / pattern, error))
    folder = folder.parent_path();
  call.pattern.file = (folder / pattern).string();
  return call;
}

Result<std::vector<NamedTable>> tables() {
  const char *place = std::getenv("HEDDLE_RECORDED");
  if (!place)
    return Status::unavailable("HEDDLE_RECORDED names no tables");
  std::vector<std::string> paths;
  std::error_code error;
  if (!fs::is_directory(place, error))
    paths.push_back(place);
  else
    for (const fs::directory_entry &entry : fs::directory_iterator(place, error))
      if (entry.path().extension() == ".csv")
        paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  std::vector<NamedTable> result;
  for (const std::string &path : paths) {
    HEDDLE_ASSIGN(tuner::RecordedTable table, tuner::RecordedTable::load(path));
    if (table.fact("problem").empty())
      continue;
    HEDDLE_ASSIGN(CallOptions call, callOf(table));
    result.push_back({std::move(table), std::move(call)});
  }
  if (result.empty())
    return Status::notFound("'" + std::string(place) + "': no tables that name a problem");
  return result;
}

/// Whether the table's pattern is the same, by whatever name, and called with the same sizes and types.
Result<bool> isOf(const NamedTable &table, const PatternFile &file, const TuneRequest &request) {
  HEDDLE_ASSIGN(const std::unique_ptr<PatternFile> other, table.call.pattern.load());
  HEDDLE_ASSIGN(const std::string digest, file.digest());
  HEDDLE_ASSIGN(const std::string otherDigest, other->digest());
  if (digest != otherDigest)
    return false;
  HEDDLE_ASSIGN(const ProblemShape shape, table.call.problem.shape(*other));
  HEDDLE_ASSIGN(const KernelShape kernel, table.call.shape.shape(*other, baselineGpuArch()));
  const ProblemShape &wanted = request.shape;
  const auto callNumbers = [](const ProblemShape &of) {
    return std::make_tuple(of.batch, of.heads, of.kvHeads, of.seqlenQ, of.seqlenK, of.parameters);
  };
  return callNumbers(shape) == callNumbers(wanted) && kernel.kind == request.kind &&
         kernel.elements.q == request.elements.q && kernel.headDim == request.headDim &&
         kernel.valueDim == request.valueDim;
}

} // namespace

Result<std::vector<SweepGpu>> gpusHere(const std::vector<int> &ordinals) {
  HEDDLE_ASSIGN(const std::vector<NamedTable> known, tables());
  std::set<std::string> names;
  for (const NamedTable &table : known)
    names.insert(table.table.fact(kGpuFact));
  std::vector<SweepGpu> gpus;
  for (int ordinal : ordinals.empty() ? std::vector<int>{0} : ordinals)
    for (const std::string &name : names)
      gpus.push_back({ordinal, name});
  return gpus;
}

Result<TuneOutcome> tuneHere(const PatternFile &file, const TuneRequest &request, Store &store) {
  HEDDLE_ASSIGN(std::vector<NamedTable> known, tables());
  const char *pace = std::getenv("HEDDLE_RECORDED_PACE");
  for (NamedTable &table : known) {
    HEDDLE_ASSIGN(const bool fits, isOf(table, file, request));
    if (fits)
      return tuneRecorded(file, request, std::move(table.table), pace ? std::atof(pace) : 0, store);
  }
  return Status::notFound("no recorded times of this call");
}

} // namespace heddle
