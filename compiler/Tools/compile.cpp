// Takes a pattern to a stage of the compilation and writes what that stage made.
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Tools/CompileStages.h"
#include "compiler/Tools/Verb.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {
namespace {

/// Refuses options that contradict each other, before any work is done.
Status checkUsage(const CompileOptions &options) {
  HEDDLE_TRY(options.shape.check());
  EmitStage stage = parseStage(options.emit);
  size_t archs = archsOf(options.archs).size();
  bool needsArch = stage >= EmitStage::config;
  if (needsArch && archs == 0)
    return Status::invalidArgument("expected --arch=ARCH for --emit=" + options.emit + "; --help lists them");
  if (options.json && options.output == "-")
    return Status::invalidArgument("expected -o FILE with --json: both would go to stdout");
  if (options.output == "-" && isBinary(stage) && stdoutIsTerminal())
    return Status::invalidArgument("expected -o FILE for --emit=" + options.emit + ": stdout is a terminal");
  bool namesArch = options.output.find("{arch}") != std::string::npos;
  if (archs > 1 && !options.output.empty() && options.output != "-" && !namesArch)
    return Status::invalidArgument("expected {arch} in the name after -o: there are " + std::to_string(archs) +
                                   " architectures");
  if (!options.database.given.empty() && stage < EmitStage::ptx)
    return Status::invalidArgument(
        "expected --emit=ptx, cubin or record with --db: a kernel is compiled to be published");
  if (options.database.given.empty() && !options.publishedName.empty())
    return Status::invalidArgument("expected --db=FILE with --name: it names the pattern there");
  return {};
}

class Compile {
public:
  explicit Compile(const CompileOptions &given) : options(given), stage(parseStage(given.emit)) {}

  Status run() {
    HEDDLE_TRY(checkOutputs());
    auto file = options.pattern.load();
    HEDDLE_TRY(file.status());
    printNotes(**file);
    if (stage < EmitStage::config)
      HEDDLE_TRY(emitPattern(**file));
    else
      HEDDLE_TRY(emitVariants(**file));
    if (options.json)
      printJson(results.size() == 1 ? results.front() : Json{{"kernels", results}});
    return {};
  }

private:
  Status checkOutputs() const {
    std::vector<std::string> uses = {options.pattern.path()};
    if (!options.database.given.empty())
      uses.push_back(options.database.path());
    HEDDLE_TRY(checkOutput("-o", options.output, uses));
    for (const GpuArch *arch : archsOf(options.archs))
      HEDDLE_TRY(checkOutput("-o", outputFor(archName(*arch)), uses));
    return {};
  }

  Status emitPattern(const PatternFile &file) {
    Artefact artefact;
    artefact.times = file.times();
    HEDDLE_ASSIGN(artefact.bytes, patternText(file, stage, options.json, artefact.times));
    artefact.facts["pattern"] = file.pattern().getSymName().str();
    return deliver(artefact, options.output);
  }

  Status emitVariants(const PatternFile &file) {
    const bool isDefault = options.config.changes().empty();
    HEDDLE_ASSIGN(
        PreparedPattern prepared,
        preparePattern(file, isDefault ? PassFunctions::ofDefaults : PassFunctions::ofAll, options.shape.kind.walk()));
    for (const GpuArch *arch : archsOf(options.archs)) {
      HEDDLE_ASSIGN(const KernelShape shape, options.shape.shape(file, *arch));
      HEDDLE_ASSIGN(Artefact artefact, makeArtefact(prepared, options, shape));
      HEDDLE_TRY(deliver(artefact, outputFor(artefact.facts["arch"])));
    }
    return {};
  }

  std::string outputFor(const std::string &arch) const {
    std::string path = options.output;
    size_t at = path.find("{arch}");
    return at == std::string::npos ? path : path.replace(at, 6, arch);
  }

  /// To the file, or to stdout if there is none and people can read it.
  Status deliver(Artefact &artefact, const std::string &path) {
    bool prints = !options.json && path.empty() && !isBinary(stage);
    if (prints || !path.empty())
      HEDDLE_TRY(
          timeStage(artefact.times, "write", [&] { return writeArtifact(prints ? "-" : path, artefact.bytes); }));
    if (options.json)
      results.push_back(describe(artefact, path));
    else if (!prints && path != "-")
      std::cout << summary(artefact, path) << '\n';
    if (options.timing && !options.json)
      printTimes("stage", artefact.times);
    return {};
  }

  Json describe(const Artefact &artefact, const std::string &path) const {
    Json json;
    json["emit"] = options.emit;
    json.update(artefact.facts);
    json["bytes"] = artefact.bytes.size();
    if (!path.empty())
      json["output"] = path;
    else if (stage == EmitStage::analysis) {
      json["analysis"] = Json::parse(artefact.bytes);
      json["analysis"].erase("schema"); // that of the whole document
    } else if (!isBinary(stage))
      json["text"] = artefact.bytes;
    if (options.timing)
      json["timing_ms"] = timesJson(artefact.times);
    return json;
  }

  CompileOptions options;
  EmitStage stage;
  Json results = Json::array();
};

} // namespace

Action addCompile(CLI::App &command) {
  auto options = std::make_shared<CompileOptions>();
  options->add(command);
  return [options] {
    if (Status usage = checkUsage(*options); !usage.isOk())
      return failUsage(usage);
    const Status status = Compile(*options).run();
    return status.isOk() ? int(Ok) : failNames(status);
  };
}

} // namespace heddle::cli
