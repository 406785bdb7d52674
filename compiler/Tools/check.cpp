// Parses, verifies and analyses patterns, all that can be said without sizes and without a GPU.
#include "compiler/Pattern/PatternSource.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/PatternReport.h"
#include "compiler/Tools/Verb.h"
#include "runtime/Core/SafeText.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <utility>

namespace heddle::cli {
namespace {

struct CheckOptions {
  std::vector<std::string> files;
  std::string pattern;
  bool json = false, strict = false;
};

class Check {
public:
  explicit Check(const CheckOptions &options) : options(options) {}

  int run() {
    for (const std::string &file : options.files)
      checkFile(file);
    if (options.json)
      printJson(Json{{"ok", code == Ok}, {"files", files}});
    return code;
  }

private:
  void checkFile(const std::string &given) {
    const Result<PatternSource> source = findPattern(given);
    if (!source)
      return refuse(given, source.status());
    tell("pattern '" + given + "': " + source->origin());
    const std::string &path = source->label;
    Result<std::string> text = PatternFile::readText(*source);
    if (!text)
      return refuse(path, text.status());
    bool isFirst = true;
    Status status = eachPattern(path, *text, [&](const PatternFile &file) {
      if (std::exchange(isFirst, false))
        printNotes(file); // of the whole text
      checkPattern(path, file);
    });
    if (!status.isOk())
      refuse(path, status);
  }

  Status eachPattern(const std::string &path, const std::string &text,
                     const std::function<void(const PatternFile &)> &visit) {
    if (options.pattern.empty())
      return PatternFile::forEach(text, path, visit);
    HEDDLE_ASSIGN(std::unique_ptr<PatternFile> file, PatternFile::parse(text, path, options.pattern));
    visit(*file);
    return {};
  }

  void checkPattern(const std::string &path, const PatternFile &file) {
    const std::string name = safeLine(attn::PatternOp(file.pattern()).getSymName());
    Result<PatternReport> report = reportOf(file);
    if (!report)
      return refuse(path, report.status());
    const std::vector<std::string> parts = maskedParts(file);
    const std::optional<std::string> cliff = options.strict ? cliffLine(file) : std::nullopt;
    bool isRefused = options.strict && (!parts.empty() || cliff || !file.notes().empty());
    if (options.json) {
      files.push_back({{"file", path}, {"ok", !isRefused}, {"pattern", report->json}});
      if (options.strict)
        files.back()["cliff"] = cliff ? Json(*cliff) : Json();
    } else {
      std::cout << path << ": " << (isRefused ? "refused" : "ok") << ": @" << name << '\n' << report->text;
    }
    if (isRefused)
      complain(refusal(path, name, parts, cliff));
  }

  static Status refusal(const std::string &path, const std::string &name, const std::vector<std::string> &parts,
                        const std::optional<std::string> &cliff) {
    std::string message = path + ": error: @" + name + " has warnings, masked parts or a cliff, which --strict refuses";
    for (const std::string &part : parts)
      message += "\n  " + part;
    if (cliff)
      message += "\n  " + *cliff;
    return Status::unsupported(message);
  }

  void refuse(const std::string &path, const Status &status) {
    complain(status);
    if (options.json)
      files.push_back({{"file", path}, {"ok", false}, {"error", safeMessage(status.message())}});
  }

  void complain(const Status &status) { code = std::max(code, failNames(status)); }

  const CheckOptions &options;
  Json files = Json::array();
  int code = Ok;
};

} // namespace

Action addCheck(CLI::App &command) {
  auto options = std::make_shared<CheckOptions>();
  addValue(command, "FILE", options->files, kPatternType,
           "Patterns: files (.mlir), names of the library ('heddle help patterns'), or - for standard input")
      ->required();
  addValue(command, "--pattern", options->pattern, "NAME", "Check only this attn.pattern");
  command.add_flag("--strict", options->strict,
                   "Refuse warnings, parts that have no closed form, and tiles that are mostly dropped (cliffs)");
  addJsonOption(command, options->json);
  return [options] { return Check(*options).run(); };
}

} // namespace heddle::cli
