#include "compiler/Tools/Options.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Session/DatabasePaths.h"
#include "compiler/Pattern/PatternSource.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Verb.h"
#include "runtime/Core/ParseCount.h"
#include "runtime/Core/Positions.h"
#include "runtime/Core/QueryRows.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <iostream>
#include <cmath>

namespace heddle::cli {

void PatternOptions::add(CLI::App &command) {
  addValue(command, "FILE", file, kPatternType,
           "Pattern: a file (.mlir), a name of the library ('heddle help patterns'), or - for standard input")
      ->required();
  addValue(command, "--pattern", name, "NAME", "Which attn.pattern of the file, if it has several");
}

Result<std::unique_ptr<PatternFile>> PatternOptions::load() const {
  HEDDLE_ASSIGN(const PatternSource source, findPattern(file));
  tell("pattern '" + file + "': " + source.origin());
  return PatternFile::load(file, name);
}

std::string PatternOptions::path() const {
  if (file.empty())
    return "";
  const Result<PatternSource> source = findPattern(file);
  const std::string path = source ? source->path : file;
  return path == "-" ? "/dev/stdin" : path;
}

void printNotes(const PatternFile &file) {
  if (!file.notes().empty())
    std::cerr << file.notes() << '\n';
}

void SizeOptions::add(CLI::App &command) {
  addValues(command, "--set", assignments, "NAME=VALUE",
            "Run-time size of the pattern, over its default, such as left=8k; may be repeated");
  addValues(command, "--operand", operands, "NAME=FILE:TENSOR",
            "Tensor that the pattern reads, from a safetensors file; may be repeated");
}

Status SizeOptions::check(const PatternFile &file) const {
  HEDDLE_TRY(file.checkSizeNames(assignments));
  return checkOperandNames(file, operands);
}

std::vector<std::string> SizeOptions::files() const {
  std::vector<std::string> files;
  for (const std::string &assignment : operands)
    files.push_back(fileOfAssignment(assignment));
  return files;
}

void OriginOption::add(CLI::App &command) {
  addCount(command, "--q-origin", position, "P", "Position of query 0, for patterns whose q_origin is given")
      ->check(CLI::Range(-kFarthestPosition, kFarthestPosition));
}

Status OriginOption::check(const std::vector<const PatternFile *> &files) const {
  bool isTaken = false;
  std::string names;
  for (const PatternFile *file : files) {
    attn::PatternOp pattern = file->pattern();
    const std::string name = "'" + pattern.getSymName().str() + "'";
    const bool takesOne = pattern.getQOrigin() == attn::Origin::given;
    if (takesOne && !position)
      return Status::invalidArgument("pattern " + name +
                                     " takes the position of query 0 per call: give it with --q-origin=P");
    isTaken |= takesOne;
    names += (names.empty() ? "" : " and ") + name;
  }
  if (!position || isTaken)
    return {};
  return Status::invalidArgument(files.size() == 1
                                     ? "pattern " + names +
                                           " fixes the position of query 0 itself: leave --q-origin out, or declare "
                                           "the pattern with q_origin given"
                                     : "patterns " + names +
                                           " fix the position of query 0 themselves: leave --q-origin out, or declare "
                                           "one with q_origin given");
}

PatternOfCall loadForCall(const PatternOptions &pattern, const OriginOption &origin, const SizeOptions &sizes) {
  auto file = pattern.load();
  if (!file)
    return {nullptr, failNames(file.status())};
  printNotes(**file);
  if (Status fits = origin.check({file->get()}); !fits.isOk())
    return {nullptr, failUsage(fits)};
  if (Status names = sizes.check(**file); !names.isOk())
    return {nullptr, failUsage(names)};
  return {file.take()};
}

void GradientsOption::add(CLI::App &command) {
  addValue(command, "--gradients-of", names, "NAME",
           "Backward: also the gradient of this number or tensor of the pattern, d_NAME, in fp32");
}

Result<Kind> GradientsOption::addedTo(Kind kind, const PatternFile &file) const {
  Result<std::vector<int64_t>> numbers = gradientArguments(file, names, kind);
  if (!numbers)
    return Status(numbers.status().code(), "--gradients-of: " + numbers.status().message());
  kind.gradientsOf = numbers.take();
  return kind;
}

static std::vector<std::string> kindNamesFor(bool withPages) {
  std::vector<std::string> names;
  for (const Kind &kind : Kind::all())
    if (withPages || !kind.hasPages())
      names.push_back(kind.name());
  return names;
}

CLI::Option *addKindOption(CLI::App &command, Kind &kind, bool withPages) {
  CLI::Option *option =
      command
          .add_option_function<std::string>(
              "--kind", [&kind](const std::string &name) { kind = *Kind::parse(name); },
              "What is computed: forward, backward, the same added to gradients in fp32 "
              "(backward_accumulate), a piece of a backward pass (row_dot: row sums "
              "of out * d_out), or q, k and v as e4m3 (quantize; quantize_rotated: with signs that "
              "rotate q and k first)" +
                  std::string(withPages ? ", or decode: forward over keys in pages; decode_invariant: bits "
                                          "of a sequence do not depend on the others of the batch"
                                        : ""))
          ->type_name("KIND")
          ->check(oneOf("kind", kindNamesFor(withPages)))
          ->default_str(kind.name());
  command.add_flag_callback(
             "--backward", [&kind] { kind = {KindBase::backward}; }, "As --kind=backward")
      ->excludes(option);
  // Defined last: kind is known when this is called.
  command.add_flag_callback(
      "--deterministic",
      [&kind] {
        if (!kind.isBackward() || kind.isDeterministic)
          throw CLI::ValidationError("--deterministic", "calls of kind " + kind.name() +
                                                            " have no such choice, those of backward and "
                                                            "backward_accumulate do");
        kind.isDeterministic = true;
      },
      "Of gradients: by kernels whose bits do not depend on the run, kind KIND_deterministic");
  return option;
}

CLI::Option *addPrecisionOption(CLI::App &command, Precision &precision) {
  std::vector<std::string> names;
  for (Precision each : kPrecisions)
    names.push_back(precisionName(each));
  return command
      .add_option_function<std::string>(
          "--precision", [&precision](const std::string &name) { precision = *parsePrecision(name); },
          "Of fp32: exact products, or of operands rounded to tf32; of e4m3: exact weights, or those of fast, without "
          "exponentials [exact]")
      ->type_name("NAME")
      ->check(oneOf("precision", names));
}

CLI::Option *addScaleRowsOption(CLI::App &command, int64_t &rows, const std::string &help) {
  std::vector<std::string> names = {"0"};
  for (int64_t each : kScaleRows)
    names.push_back(std::to_string(each));
  return command
      .add_option_function<std::string>(
          "--scale-rows", [&rows](const std::string &text) { rows = *parseCount(text); },
          help + ", 64 or 128; 0: all of a head [0]")
      ->type_name("N")
      ->check(oneOf("number of rows", names));
}

CLI::Option *addKeyMajorOption(CLI::App &command, bool &isKeyMajor, const std::string &help) {
  return command.add_flag("--v-key-major", isKeyMajor, help + " key-major: [batch, value_dim, kv_heads, seqlen_k]");
}

void ShapeOptions::add(CLI::App &command, bool withPages) {
  addKindOption(command, kind, withPages);
  gradientsOf.add(command);
  addCount(command, "--head-dim", headDim, "N", "Elements of one head of q and k")->capture_default_str();
  addCount(command, "--value-dim", valueDim, "N", "Elements of one head of v and out [head-dim]");
  addValue(command, "--dtype", dtype, "TYPE", "Element type of q, k, v: " + elementList(&ElementTraits::isComputed))
      ->check(CLI::IsMember(elementNames(&ElementTraits::isComputed)))
      ->capture_default_str();
  addValue(command, "--out-dtype", outDtype, "TYPE",
           std::string("Element type of out: that of q, or ") + dtypeName(kAccumulator) +
               "; of e4m3 bf16, fp16 or fp32 [as q; of e4m3 bf16]")
      ->check(CLI::IsMember(elementNames(&ElementTraits::isOfCalls)));
  addValue(command, "--kv-dtype", keyDtype, "TYPE", "Element type of k and v, if it is e4m3 beside q of bf16 or fp16")
      ->check(CLI::IsMember(elementNames(&ElementTraits::isScaled)));
  addPrecisionOption(command, precision);
  addScaleRowsOption(command, scaleRows, "Of e4m3 and kind quantize: how many rows of q and k share a scale");
}

void ShapeOptions::addQueries(CLI::App &command) {
  addCount(
      command, "--seqlen", queries, "N",
      "Queries of the calls that the default is chosen for (of kind decode: times the heads that share a kv head): few "
      "want small tiles, and keys in parts; from 8192 on values of e4m3 are turned over once [any number]")
      ->check(CLI::Range(int64_t(1), kFarthestPosition));
}

Status ShapeOptions::check() const {
  const DType q = *parseDType(dtype);
  const CallElements elements(q, parseDType(outDtype).value_or(CallElements::outOf(q)));
  if (checkElements(elements, /*takesScaledKeys=*/true).isOk())
    return {};
  const std::string choice = traitsOf(q).isScaled() ? elementList(&ElementTraits::isOfWarps)
                                                    : dtype + " or " + std::string(dtypeName(kAccumulator));
  return Status::invalidArgument("expected --out-dtype=" + choice + ", got " + outDtype);
}

Result<KernelShape> ShapeOptions::shape(const PatternFile &file, const GpuArch &arch) const {
  KernelShape shape;
  HEDDLE_ASSIGN(shape.kind, gradientsOf.addedTo(kind, file));
  shape.arch = &arch;
  const DType q = *parseDType(dtype);
  shape.elements = CallElements(q, parseDType(outDtype).value_or(CallElements::outOf(q)), precision)
                       .withKeys(parseDType(keyDtype).value_or(q))
                       .withScaleRows(scaleRows);
  shape.headDim = headDim;
  shape.valueDim = valueDim ? valueDim : headDim;
  shape.queryRows = queryRowsOf(queries, 0, 0, shape);
  return shape;
}

void ConfigOptions::addSkeleton(CLI::App &command) {
  addValue(command, "--skeleton", skeleton, "NAME", "Family of kernels [the first that serves the request]")
      ->check(oneOf("skeleton", skeletonNames()));
}

CLI::Option *ConfigOptions::addFields(CLI::App &command) {
  return addValue(command, "--config", fields, "FIELDS",
                  "Changes to the default configuration, as block_m=128,reduce=ordered")
      ->check(configFields());
}

std::string ConfigOptions::changes() const {
  return skeleton.empty() ? fields : "skeleton=" + skeleton + (fields.empty() ? "" : ",") + fields;
}

void addArchOption(CLI::App &command, std::vector<std::string> &given) {
  std::string known;
  for (const std::string &name : gpuArchNames())
    known += (known.empty() ? "" : ", ") + name;
  std::vector<std::string> names = gpuArchNames();
  names.push_back("all");
  addValue(command, "--arch", given, "ARCH",
           "Architecture to compile for: " + known + "; several, or all, to see that they assemble")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(oneOf("architecture", names));
}

std::vector<const GpuArch *> archsOf(const std::vector<std::string> &names) {
  std::vector<const GpuArch *> archs;
  for (const std::string &known : gpuArchNames())
    if (llvm::any_of(names, [&](const std::string &name) { return name == "all" || name == known; }))
      archs.push_back(*findGpuArch(known));
  return archs;
}

void DatabaseOptions::add(CLI::App &command) {
  addValue(command, "--db", given, "FILE", "Kernel database [$HEDDLE_DB, else heddle/kernels.db in the cache folder]");
  addPermissions(command);
}

void DatabaseOptions::addPermissions(CLI::App &command) {
  command.add_flag("--db-allow-foreign-writers", allowForeignWriters, "Accept a database that other users may write");
  command.add_flag("--db-force-network", forceNetwork, "Write on a network file system");
}

void DatabaseOptions::addShipped(CLI::App &command) {
  addValues(command, "--shipped-db", givenShipped, "FILE",
            "Database that is only read, asked after the one of --db; may be repeated [$HEDDLE_SHIPPED_DB, "
            "separated by colons]");
}

std::string DatabaseOptions::path() const { return given.empty() ? userDatabase() : given; }

static void sayWait(const StoreWait &wait) {
  warn("waiting for " + wait.holder + ", which holds '" + wait.path + "'; at most " +
       std::to_string(wait.limitMs / 1000) + " s");
}

StoreOptions DatabaseOptions::options(StoreMode mode) const {
  StoreOptions options;
  options.mode = mode;
  options.allowForeignWriters = allowForeignWriters;
  options.forceNetwork = forceNetwork;
  options.onWait = sayWait;
  return options;
}

Result<Store> DatabaseOptions::open(StoreMode mode) const {
  tell("database '" + path() + "', " + (given.empty() ? "the user's own" : "as given") +
       (mode == StoreMode::readOnly ? ", to read" : ", to read and write"));
  return openUserDatabase(path(), options(mode));
}

std::vector<std::string> DatabaseOptions::shippedPaths() const {
  return givenShipped.empty() ? shippedDatabases() : givenShipped;
}

Result<StoreStack> DatabaseOptions::openForLookup() const {
  StoreStack stores;
  std::error_code ignored;
  if (std::filesystem::exists(path(), ignored)) {
    HEDDLE_ASSIGN(Store own, open(StoreMode::readOnly));
    stores.add(std::move(own));
  }
  HEDDLE_ASSIGN(std::vector<Store> shipped, openShippedStores());
  for (Store &store : shipped)
    stores.add(std::move(store));
  return stores;
}

Result<std::vector<Store>> DatabaseOptions::openShippedStores() const {
  std::vector<Store> stores;
  for (const std::string &shipped : shippedPaths()) {
    tell("database '" + shipped + "', shipped");
    HEDDLE_ASSIGN(Store store, openShipped(shipped, allowForeignWriters));
    stores.push_back(std::move(store));
  }
  return stores;
}

CLI::Option *addSeedOption(CLI::App &command, uint64_t &seed, const std::string &help, const char *name) {
  auto check = [](std::string &text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size())
      return std::string();
    return "expected a whole number from 0 to " + std::to_string(std::numeric_limits<uint64_t>::max()) + ", got '" +
           text + "'";
  };
  return addValue(command, name, seed, "S", help)->check(CLI::Validator(check, "", "SEED"));
}

void addJsonOption(CLI::App &command, bool &json) { command.add_flag("--json", json, "Print the result as JSON"); }

void ProblemOptions::add(CLI::App &command, bool withSeqlen) {
  takesCount(command.add_option("--batch", batch, "batch elements"))->capture_default_str();
  if (withSeqlen)
    takesCount(command.add_option("--seqlen", seqlen, "queries, and keys unless --seqlen-k is given"))->required();
  takesCount(command.add_option("--seqlen-k", seqlenK, "keys, if not as many as queries"));
  takesCount(command.add_option("--heads", heads, "query heads"))->capture_default_str();
  takesCount(command.add_option("--kv-heads", kvHeads, "key and value heads, if not as many as query heads"));
  sizes.add(command);
}

Result<ProblemShape> ProblemOptions::shape(const PatternFile &file) const {
  ProblemShape result;
  result.batch = batch;
  result.heads = heads;
  result.kvHeads = kvHeads ? kvHeads : heads;
  result.seqlenQ = seqlen;
  result.seqlenK = seqlenK ? seqlenK : seqlen;
  HEDDLE_ASSIGN(result.parameters, file.bindParameters(sizes.assignments));
  HEDDLE_TRY(checkShape(file, result));
  HEDDLE_TRY(bindOperands(file, {sizes.operands, {}, OperandSources::Missing::make}, result));
  return result;
}

Result<double> parseSeconds(const std::string &text) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  std::string unit = end;
  double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "ms" ? 1e-3 : 0;
  if (end == text.c_str() || factor == 0 || !(value > 0) || !std::isfinite(value))
    return Status::invalidArgument("expected --budget above 0 in seconds (30, 30s or 2m), got '" + text + "'");
  return value * factor;
}

} // namespace heddle::cli
