#include "compiler/Tools/CompileStages.h"
#include "codegen/Nvrtc/Compiler.h"
#include "codegen/Nvrtc/KernelSource.h"
#include "codegen/Nvrtc/ResourceUsage.h"
#include "compiler/Pattern/PatternFunctions.h"
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Session/Publish.h"
#include "compiler/Tools/PatternReport.h"
#include "runtime/Core/CountText.h"
#include "runtime/Core/FieldText.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <iterator>

namespace heddle::cli {

static constexpr const char *kStageNames[] = {"ast",  "analysis", "schedule", "config",
                                              "cuda", "ptx",      "cubin",    "record"};

EmitStage parseStage(const std::string &name) {
  auto found = std::find(std::begin(kStageNames), std::end(kStageNames), name);
  return EmitStage(found - std::begin(kStageNames));
}

bool isBinary(EmitStage stage) { return stage == EmitStage::cubin; }

void CompileOptions::add(CLI::App &command) {
  pattern.add(command);
  addArchOption(command, archs);
  shape.add(command, /*withPages=*/true);
  shape.addQueries(command);
  addValue(command, "--emit", emit, "STAGE",
           "Stage to stop at: ast, analysis, schedule, config, cuda, ptx, cubin or record")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kStageNames), std::end(kStageNames))))
      ->capture_default_str();
  addValue(command, "-o,--output", output, "FILE",
           "Where to write it; - is stdout, {arch} stands for the architecture [text: stdout; cubin: nowhere]");
  config.addSkeleton(command);
  config.addFields(command);
  database.add(command);
  addValue(command, "--name", publishedName, "NAME", "Name under which --db lists the pattern [its own]");
  command.add_flag("--timing", timing, "Print what each stage took, on stderr or in the JSON");
  addJsonOption(command, json);
}

static std::string moduleText(mlir::ModuleOp functions) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  functions.print(stream);
  return text + "\n";
}

Result<std::string> patternText(const PatternFile &file, EmitStage stage, bool json, StageTimes &times) {
  if (stage == EmitStage::ast)
    return file.text();
  if (stage == EmitStage::schedule) {
    HEDDLE_ASSIGN(PatternFunctions functions, timeStage(times, "schedule", [&] { return functionsOf(file); }));
    return moduleText(*functions.module);
  }
  HEDDLE_ASSIGN(PatternReport report, timeStage(times, "schedule", [&] { return reportOf(file); }));
  return json ? documentText(report.json) : report.text;
}

static Json shapeJson(const PreparedPattern &prepared, const KernelShape &shape) {
  Json json;
  json["pattern"] = prepared.name;
  json["pattern_digest"] = prepared.digest;
  json["arch"] = shape.archName();
  json["dtype"] = dtypeName(shape.elements.q);
  json["out_dtype"] = dtypeName(shape.elements.out);
  json["precision"] = precisionName(shape.elements.precision);
  json["head_dim"] = shape.headDim;
  json["value_dim"] = shape.valueDim;
  json["generator"] = kGenerator;
  return json;
}

static Json kernelJson(const KernelRecord &record) {
  Json json;
  json["content_key"] = record.contentKey;
  json["registers"] = record.registers;
  json["spill_bytes"] = record.spillBytes;
  json["spills"] = Json::object(); // of all kernels of the binary
  for (const EntrySpills &spills : parseSpills(record.compileLog))
    json["spills"][spills.entry] = spills.bytes;
  json["warpgroup_products"] = countWarpgroupProducts(record.ptx);
  json["remarks"] = Json::array();
  for (const CompilerNote &note : parseNotes(record.compileLog))
    json["remarks"].push_back(note.code + ": " + note.text);
  json["shared_bytes"] = record.sharedBytes;
  json["cubin_bytes"] = record.cubin.size();
  json["ptx_bytes"] = record.ptx.size();
  json["nvrtc"] = record.nvrtcVersion;
  json["min_driver"] = record.minDriver;
  json["note"] = record.note;
  return json;
}

/// Every field of the record; code is named by its digest.
static std::string recordText(KernelRecord record) {
  auto digest = [](const std::string &bytes) {
    return std::to_string(bytes.size()) + " bytes, sha256 " + sha256Hex(bytes);
  };
  record.cubin = digest(record.cubin);
  record.ptx = digest(record.ptx);
  return fieldText(record);
}

static std::string codeOf(const KernelRecord &record, EmitStage stage) {
  if (stage == EmitStage::ptx)
    return record.ptx;
  return stage == EmitStage::cubin ? record.cubin : recordText(record);
}

static Status publish(const PreparedPattern &prepared, const KernelShape &shape, const CompileOptions &options,
                      const KernelRecord &record) {
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readWrite));
  HEDDLE_TRY(publishDefault(store, record, shape.queryRows));
  return publishName(store, prepared, options.publishedName.empty() ? prepared.name : options.publishedName);
}

/// What the database that is given has already. One that is empty, as a process that was killed leaves it, is yet to be filled.
static Result<CompiledVariant> compileInto(const PreparedPattern &prepared, const KernelShape &shape,
                                           const CompileOptions &options) {
  StoreStack stores;
  std::error_code ignored;
  if (!options.database.given.empty() && !std::filesystem::is_empty(options.database.path(), ignored)) {
    HEDDLE_ASSIGN(stores, options.database.openForLookup());
  }
  return compileVariant(prepared, shape, options.config.changes(), /*threads=*/0,
                        [&](const std::string &contentKey) { return stores.kernel(contentKey); });
}

static Status addCode(Artefact &artefact, const PreparedPattern &prepared, const KernelShape &shape,
                      const CompileOptions &options) {
  HEDDLE_ASSIGN(CompiledVariant variant, compileInto(prepared, shape, options));
  artefact.times.insert(artefact.times.end(), variant.times.begin(), variant.times.end());
  HEDDLE_ASSIGN(ConfigSummary config, summarizeConfig(variant.record.config));
  artefact.facts["config"] = Json::parse(config.json); // the compiler may have refused the one that was planned
  artefact.facts.update(kernelJson(variant.record));
  artefact.bytes = codeOf(variant.record, parseStage(options.emit));
  if (options.database.given.empty())
    return {};
  artefact.facts["database"] = options.database.path();
  return timeStage(artefact.times, "publish", [&] { return publish(prepared, shape, options, variant.record); });
}

Result<Artefact> makeArtefact(const PreparedPattern &prepared, const CompileOptions &options,
                              const KernelShape &shape) {
  Artefact artefact;
  artefact.times = prepared.times;
  artefact.facts = shapeJson(prepared, shape);
  auto config =
      timeStage(artefact.times, "config", [&] { return configFor(prepared, shape, options.config.changes()); });
  HEDDLE_TRY(config.status());
  artefact.facts["config"] = Json::parse(config->json);
  EmitStage stage = parseStage(options.emit);
  if (stage == EmitStage::config) {
    artefact.bytes = config->text;
  } else if (stage == EmitStage::cuda) {
    auto sources =
        timeStage(artefact.times, "source", [&] { return variantSources(prepared, shape, options.config.changes()); });
    HEDDLE_TRY(sources.status());
    for (const KernelSource &source : *sources)
      artefact.bytes += (artefact.bytes.empty() ? "" : "\n") + source.text;
  } else {
    HEDDLE_TRY(addCode(artefact, prepared, shape, options));
  }
  return artefact;
}

std::string summary(const Artefact &artefact, const std::string &path) {
  const Json &facts = artefact.facts;
  std::string text = facts.value("pattern", "");
  if (facts.contains("arch"))
    text += " " + facts["arch"].get<std::string>() + " " + facts["dtype"].get<std::string>() +
            " head_dim=" + facts["head_dim"].dump();
  if (facts.contains("registers"))
    text += ": " + facts["registers"].dump() + " registers, " + grouped(facts["spill_bytes"].get<int64_t>()) +
            " B spilled, " + grouped(facts["shared_bytes"].get<int64_t>()) + " B shared memory, " +
            grouped(facts["cubin_bytes"].get<int64_t>()) + " B cubin";
  if (facts.contains("spills"))
    for (const auto &[entry, bytes] : facts["spills"].items())
      if (entry != kKernelEntry)
        text += "; " + entry + " spills " + grouped(bytes.get<int64_t>()) + " B";
  if (facts.contains("note") && !facts["note"].get<std::string>().empty())
    text += "; " + facts["note"].get<std::string>();
  return path.empty() ? text : text + " -> " + path;
}

} // namespace heddle::cli
