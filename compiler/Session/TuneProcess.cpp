#include "compiler/Session/SweepShard.h"
#include "compiler/Measure/RunningProgram.h"
#include "runtime/Core/Digest.h"
#include "runtime/Core/Plausible.h"
#include "runtime/Core/ReadFile.h"
#include "runtime/Core/SafeText.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace heddle {
namespace {

using Json = nlohmann::json;

constexpr const char *kVisible = "CUDA_VISIBLE_DEVICES";
constexpr int kEnvironmentLacks = 3; ///< exit code of heddle, also where a kernel that does not end holds the GPU

/// As a word that no option begins like.
std::string positional(const std::string &file) { return file.rfind('-', 0) == 0 ? "./" + file : file; }

std::vector<std::string> argumentsOf(const TuneCommand &command, const TuneItem &item) {
  const PlanProblem &problem = item.problem;
  std::vector<std::string> words = {"tune",
                                    positional(item.pattern.file),
                                    "--json",
                                    "--db=" + command.database,
                                    "--kind=" + item.kind.name(),
                                    std::string("--dtype=") + dtypeName(item.dtype)};
  if (item.precision != Precision::exact)
    words.push_back(std::string("--precision=") + precisionName(item.precision));
  auto add = [&](const char *option, int64_t value) {
    words.push_back(std::string(option) + "=" + std::to_string(value));
  };
  add("--head-dim", item.dims.head), add("--value-dim", item.dims.value);
  add("--batch", problem.batch), add("--heads", problem.heads), add("--kv-heads", problem.kvHeads);
  add("--seqlen", problem.seqlenQ);
  if (const ServedKeys &served = problem.served; served.isGiven()) {
    words.push_back("--lengths=" + served.lengths.text());
    words.push_back(std::string("--keys=") + keyPlacesName(served.layout.places));
    add("--page-size", served.layout.pageSize);
  } else {
    add("--seqlen-k", problem.seqlenK);
  }
  if (!item.pattern.pattern.empty())
    words.push_back("--pattern=" + item.pattern.pattern);
  if (!item.pattern.name.empty())
    words.push_back("--name=" + item.pattern.name);
  for (const std::string &size : item.pattern.sizes)
    words.push_back("--set=" + size);
  for (const std::string &name : item.pattern.gradientsOf)
    words.push_back("--gradients-of=" + name);
  words.insert(words.end(), command.options.begin(), command.options.end());
  return words;
}

/// What the driver is to show: the GPU of that number among those that it shows here.
std::string visibleDevice(int ordinal) {
  const char *given = std::getenv(kVisible);
  std::string rest = given ? given : "";
  for (int i = 0; i < ordinal && !rest.empty(); ++i)
    rest.erase(0, rest.find(',') == std::string::npos ? rest.size() : rest.find(',') + 1);
  return rest.empty() ? std::to_string(ordinal) : rest.substr(0, rest.find(','));
}

std::vector<std::string> environmentOf(const SweepGpu &gpu) {
  std::vector<std::string> variables;
  for (char **variable = environ; *variable; ++variable)
    if (std::strncmp(*variable, kVisible, std::strlen(kVisible)) != 0)
      variables.push_back(*variable);
  variables.push_back(std::string(kVisible) + "=" + visibleDevice(gpu.ordinal));
  return variables;
}

std::string textOf(const std::string &path) {
  constexpr int64_t kMostBytes = int64_t(64) << 20;
  Result<std::string> text = readTextFile(path, {"output of a tune", kMostBytes});
  return text ? text.take() : text.status().message();
}

/// The last error that the child printed, else its last line.
std::string lastWords(const std::string &text) {
  std::string last, error;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (!line.empty())
      last = line;
    if (line.find("error: ") != std::string::npos)
      error = line;
    begin = end + 1;
  }
  return safeLine(error.empty() ? last : error, kMostLineBytes);
}

/// Runs the child once. unavailable: it could not be started, crashed or hung; the message says which.
Result<int> exitCodeOf(const TuneCommand &command, const TuneItem &item, const SweepGpu &gpu, const std::string &base) {
  ProgramCall call{command.program, argumentsOf(command, item), environmentOf(gpu)};
  ProgramFiles files;
  files.read("/dev/null", STDIN_FILENO).write(base + ".json", STDOUT_FILENO).write(base + ".log", STDERR_FILENO);
  HEDDLE_ASSIGN(RunningProgram child, RunningProgram::start(call, files));
  const std::optional<ProgramEnd> end = child.waitForEnd(command.limitSeconds);
  if (!end) {
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%g", command.limitSeconds);
    return Status::unavailable(std::string("timed out: the process that tunes did not end within ") + seconds +
                               " s and was killed");
  }
  if (end->signal || end->code == ProgramEnd::kUnknown)
    return Status::unavailable("the process that tunes " + end->str());
  return end->code;
}

SweepEntry entryOf(const Result<int> &code, const std::string &base) {
  SweepEntry entry;
  if (!code) {
    entry.message = code.status().message();
    return entry;
  }
  const Json said = Json::parse(textOf(base + ".json"), nullptr, /*allow_exceptions=*/false);
  const bool hasWinner = said.is_object() && said.contains("winner") && said["winner"].is_object();
  const Json median = hasWinner ? said["winner"].value("median_us", Json()) : Json();
  const double medianUs = median.is_number() ? median.get<double>() : 0;
  const std::string wrong = hasWinner ? wrongTime(medianUs) : "";
  entry.isDone = *code == 0 && hasWinner && wrong.empty() && said.value("end", "") != "cancelled";
  if (entry.isDone)
    entry.medianUs = medianUs;
  else if (*code == 0 && !wrong.empty())
    entry.message = "median_us of the winner: " + wrong;
  else if (*code == 0)
    entry.message = hasWinner ? "interrupted" : "the process that tunes answered no winner";
  else
    entry.message = lastWords(textOf(base + ".log"));
  return entry;
}

} // namespace

SweepEntry tuneElsewhere(const TuneCommand &command, const TuneItem &item, const SweepGpu &gpu) {
  const std::string base =
      (std::filesystem::path(command.folder) / ("item-" + sha256Hex(item.str()).substr(0, 12))).string();
  SweepEntry entry;
  for (int attempt = 0; attempt < command.attempts; ++attempt) {
    const Result<int> code = exitCodeOf(command, item, gpu, base);
    entry = entryOf(code, base);
    if (code && *code != kEnvironmentLacks)
      break;
  }
  std::error_code ignored;
  std::filesystem::remove(base + ".json", ignored);
  if (entry.isDone)
    std::filesystem::remove(base + ".log", ignored);
  return entry;
}

} // namespace heddle
