#include "compiler/Tools/Output.h"
#include "compiler/Views/KeptPairs.h"
#include "compiler/Io/AtomicFile.h"
#include "compiler/Tools/SafeStream.h"
#include "runtime/Core/CountText.h"
#include "runtime/Store/Store.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <unistd.h>

namespace heddle::cli {

/// The document of this process, which runs one command.
static std::optional<Json> document;
static Json failure;

std::string documentText(const Json &object) {
  Json whole = {{"schema", kJsonSchema}};
  whole.update(object);
  return whole.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void printJson(Json object) { document = std::move(object); }

/// Adds what was probably meant by a message, and its notes.
static void addHints(Json &hints, const std::string &message) {
  if (const size_t meant = message.find("did you mean '"); meant != std::string::npos)
    hints.push_back(message.substr(meant, message.find('?', meant) + 1 - meant));
  constexpr std::string_view kNote = "note: ";
  for (size_t begin = message.find("\nnote: "); begin != std::string::npos;
       begin = message.find("\nnote: ", begin + 1)) {
    const size_t text = begin + 1 + kNote.size(), end = std::min(message.find('\n', text), message.size());
    hints.push_back(message.substr(text, end - text));
  }
}

void recordFailure(const Status &status, int exitCode, const std::vector<std::string> &hints) {
  if (!failure.is_null() && failure["exit_code"].get<int>() > exitCode)
    return;
  failure = {{"code", statusCodeName(status.code())},
             {"message", status.message()},
             {"hints", Json::array()},
             {"exit_code", exitCode}};
  addHints(failure["hints"], status.message());
  for (const std::string &hint : hints)
    failure["hints"].push_back(hint);
}

void flushDocument(bool isWanted) {
  if (!failure.is_null() && (document || isWanted)) {
    if (!document)
      document = Json::object();
    (*document)["error"] = failure;
  }
  if (document)
    std::cout << documentText(*document);
  document.reset();
}

bool stdoutIsTerminal() { return ::isatty(STDOUT_FILENO); }

static bool isSameFile(const std::string &a, const std::string &b) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (fs::equivalent(a, b, failed))
    return true;
  if (fs::exists(a, failed) || fs::exists(b, failed))
    return false;
  auto place = [&](const std::string &path) { return fs::weakly_canonical(fs::absolute(path), failed); };
  const fs::path first = place(a), second = place(b); // both are yet to be made
  return !first.empty() && first == second;
}

Status checkOutput(const std::string &option, const std::string &output, const std::vector<std::string> &uses) {
  for (const std::string &used : uses)
    if (!output.empty() && !used.empty() && isSameFile(output, used))
      return Status::invalidArgument(option + ": '" + output + "' would take the place of '" + used +
                                     "', which the command uses too: give another file");
  if (!output.empty() && holdsStore(output))
    return Status::invalidArgument(option + ": '" + output +
                                   "' is a kernel database or a part of one, which nothing else takes the place of: "
                                   "give another file, or remove it first");
  return {};
}

std::string endingOf(const std::string &path) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending;
}

Status checkEnding(const std::string &option, const std::string &output, const std::vector<std::string> &endings,
                   const std::string &otherwise) {
  const std::string ending = endingOf(output);
  if (ending.empty() || std::find(endings.begin(), endings.end(), ending) != endings.end())
    return {};
  std::string known;
  for (const std::string &one : endings)
    known += (known.empty() ? "" : " or ") + one;
  return Status::invalidArgument(option + ": expected a name that ends in " + known + ", got '" + output +
                                 "': " + otherwise);
}

Status writeArtifact(const std::string &path, const std::string &bytes) {
  if (path != "-")
    return writeFileAtomically(path, bytes);
  std::cout.flush();
  if (stdoutIsTerminal())
    std::cout << bytes << std::flush;
  // the bytes as they are
  else if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() || std::fflush(stdout) != 0)
    std::cout.setstate(std::ios::badbit);
  return std::cout ? Status() : Status::io("cannot write to stdout");
}

static double totalMs(const StageTimes &times) {
  double total = 0;
  for (const StageTime &time : times)
    total += time.ms;
  return total;
}

/// Microseconds are as fine as the clock is worth.
static double rounded(double ms) { return std::round(ms * 1000) / 1000; }

Json timesJson(const StageTimes &times) {
  Json json = Json::object();
  for (const StageTime &time : times)
    json[time.stage] = rounded(time.ms);
  json["total"] = rounded(totalMs(times));
  return json;
}

void printTimes(const std::string &title, const StageTimes &times) {
  printTo(std::cerr, "%-10s %12s\n", title.c_str(), "ms");
  for (const StageTime &time : times)
    printTo(std::cerr, "%-10s %12.3f\n", time.stage.c_str(), time.ms);
  printTo(std::cerr, "%-10s %12.3f\n", "total", totalMs(times));
}

Result<std::optional<double>> keptFlops(const PatternFile &file, const ProblemShape &shape, int64_t flopsOfPair) {
  if (!flopsOfPair)
    return std::optional<double>();
  HEDDLE_ASSIGN(const views::KeptPairs kept, views::keptPairsOf(file, sizesOf(file, shape), shape.operands));
  if (!kept.count)
    return std::optional<double>();
  return std::optional<double>(double(flopsOfPair) * static_cast<double>(*kept.count) * shape.batch);
}

const char *placeWord(const oracle::RoleReport &role) {
  return !role.argument.empty() ? "element" : specOf(role.role).rows == RoleExtent::seqlenK ? "key" : "row";
}

Json finiteJson(double value) { return std::isfinite(value) ? Json(value) : Json("inf"); }

Json errorsJson(const oracle::KindReport &report) {
  Json json = Json::object();
  for (const oracle::RoleReport &role : report.roles) {
    const std::string name = &role == &report.roles.front() ? "" : "_" + role.name();
    json["max" + name + "_error"] = finiteJson(role.maxError);
    json["allowed" + name + "_error"] = finiteJson(role.allowedError);
    json["worst" + name] = {{"batch", role.worst.batch}, {"head", role.worst.head}, {placeWord(role), role.worst.row}};
  }
  return json;
}

std::optional<double> teraflops(const std::optional<double> &flops, double us) {
  return flops && us > 0 ? std::optional<double>(*flops / us * 1e-6) : std::nullopt;
}

std::string rateText(const std::optional<double> &rate) {
  char text[32] = "-";
  if (rate)
    std::snprintf(text, sizeof(text), "%.1f", *rate);
  return text;
}

Json rateJson(const std::optional<double> &rate) { return rate ? Json(*rate) : Json(); }

Json verifyJson(const oracle::KindReport &report) {
  Json json = {{"ok", report.isOk()}, {"rows", report.rowsChecked}};
  if (report.keysChecked)
    json["keys"] = report.keysChecked;
  json.update(errorsJson(report));
  return json;
}

void printVerify(const oracle::KindReport &report) {
  const std::string keys = report.keysChecked ? " and " + counted(report.keysChecked, "key") : "";
  printTo(std::cout, "verified %s%s against the definition in fp64\n", counted(report.rowsChecked, "row").c_str(),
          keys.c_str());
  printTo(std::cout, "  %-5s %12s %12s   worst row\n", "", "error", "allowed");
  for (const oracle::RoleReport &role : report.roles)
    printTo(std::cout, "  %-5s %12.3e %12.3e   batch %lld, head %lld, %s %lld   %s\n", role.name().c_str(),
            role.maxError, role.allowedError, (long long)role.worst.batch, (long long)role.worst.head, placeWord(role),
            (long long)role.worst.row, role.isOk() ? "ok" : "WRONG");
  if (!report.note.empty())
    printTo(std::cout, "  %s\n", report.note.c_str());
  std::cout.flush();
}

} // namespace heddle::cli
