#include "compiler/Pattern/PatternFile.h"
#include "compiler/Pattern/BindWords.h"
#include "codegen/Choose/RatesOf.h"
#include "codegen/Schedule/AttentionSchedule.h"
#include "compiler/Pattern/PatternDiagnostics.h"
#include "compiler/Pattern/PatternSource.h"
#include "compiler/Pattern/Suggest.h"
#include "dialect/IR/PatternOperands.h"
#include "dialect/IR/RealWord.h"
#include "dialect/Transforms/Passes.h"
#include "runtime/Core/CountText.h"
#include "runtime/Core/ParseCount.h"
#include "runtime/Core/Digest.h"
#include "runtime/Core/ReadFile.h"
#include "runtime/Core/SafeText.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemoryBuffer.h"

#include <charconv>
#include <cmath>
#include <new>

using namespace mlir;

namespace heddle {

[[noreturn]] static void throwBadAlloc(void *, const char *, bool) { throw std::bad_alloc(); }

/// A parsed text, which its patterns share.
struct PatternFile::Source {
  Source() : context(MLIRContext::Threading::DISABLED), diagnostics(&context) {
    // LLVM allocates with malloc too, and would end the process.
    static const bool installed = (llvm::install_bad_alloc_error_handler(throwBadAlloc), true);
    static_cast<void>(installed);
    loadScheduleDialects(context);
  }
  MLIRContext context;
  PatternDiagnostics diagnostics;
  OwningOpRef<ModuleOp> module;
};

PatternFile::PatternFile() = default;
PatternFile::~PatternFile() = default;

Result<std::string> PatternFile::readText(const std::string &path) {
  Result<std::string> text = readTextFile(path, {"pattern file", kMaxPatternBytes, /*readsStdin=*/true});
  return text ? std::move(text) : Status::invalidArgument(text.status().message());
}

Result<std::string> PatternFile::readText(const PatternSource &source) {
  return source.path.empty() ? Result<std::string>(std::string(source.libraryText)) : readText(source.path);
}

Result<std::unique_ptr<PatternFile>> PatternFile::load(const std::string &path, const std::string &name) {
  HEDDLE_ASSIGN(const PatternSource source, findPattern(path));
  HEDDLE_ASSIGN(const std::string text, readText(source));
  return parse(text, source.label, name);
}

static std::vector<std::string> namesOf(ArrayRef<attn::PatternOp> patterns) {
  std::vector<std::string> names;
  for (attn::PatternOp pattern : patterns)
    names.push_back(safeLine(pattern.getSymName()));
  return names;
}

static std::string listOf(ArrayRef<std::string> names) {
  constexpr size_t kMostNames = 30;
  return llvm::join(names.take_front(kMostNames), ", ") +
         (names.size() > kMostNames ? " and " + grouped(names.size() - kMostNames) + " more" : "");
}

/// What was meant, and what comes between it and the list of what there is.
static std::string orElse(const std::string &meant, const char *none) { return meant.empty() ? none : meant + ";"; }

static Result<attn::PatternOp> choosePattern(ModuleOp module, const std::string &label, const std::string &name) {
  SmallVector<attn::PatternOp> patterns(module.getOps<attn::PatternOp>());
  if (patterns.empty())
    return Status::invalidArgument(label + ": error: expected an attn.pattern, found none");
  for (attn::PatternOp pattern : patterns)
    if (pattern.getSymName() == name || (name.empty() && patterns.size() == 1))
      return pattern;
  const std::vector<std::string> names = namesOf(patterns);
  if (name.empty())
    return Status::invalidArgument(label + ": error: several patterns (" + listOf(names) +
                                   "), choose one with --pattern=NAME");
  return Status::notFound(label + ": error: no pattern '" + name + "'" + orElse(didYouMean(name, names), ",") +
                          " the file has: " + listOf(names));
}

/// After "custom op 'attn.windov' is unknown": the ops that there are, the nearest first.
static std::string unknownOpNote(MLIRContext &context, const std::string &said) {
  constexpr StringLiteral before = "custom op '";
  size_t begin = said.find(before.str());
  if (begin == std::string::npos)
    return {};
  begin += before.size();
  const size_t end = said.find('\'', begin);
  if (end == std::string::npos || said.compare(end, 12, "' is unknown") != 0)
    return {}; // another complaint about an op that there is
  std::string word = said.substr(begin, end - begin);
  std::vector<std::string> names;
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("attn"))
    names.push_back(name.getStringRef().str());
  std::string nearby = nearest(word, names);
  return nearby.empty() ? "\nnote: docs/reference.md lists the ops" : "\nnote: did you mean '" + nearby + "'?";
}

Result<std::unique_ptr<PatternFile>> PatternFile::parseModule(const std::string &text, const std::string &label) {
  HEDDLE_TRY(checkPatternText(text, label));
  std::unique_ptr<PatternFile> file(new PatternFile());
  file->label = label;
  file->source = std::make_shared<Source>();
  Source &source = *file->source;
  source.diagnostics.sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, label), SMLoc());
  source.module = timeStage(file->stageTimes, "parse", [&] {
    return parseSourceFile<ModuleOp>(source.diagnostics.sources, ParserConfig(&source.context));
  });
  std::string said = source.diagnostics.take();
  if (!source.module)
    return Status::invalidArgument(said.empty() ? label + ": error: cannot be parsed"
                                                : said + unknownOpNote(source.context, said));
  for (attn::PatternOp pattern : source.module->getOps<attn::PatternOp>())
    if (failed(attn::verifyOperandsAreRead(pattern)))
      return Status::invalidArgument(said + source.diagnostics.take());
  file->warnings = std::move(said);
  return file;
}

Status PatternFile::forEach(const std::string &text, const std::string &label,
                            const std::function<void(const PatternFile &)> &visit) {
  HEDDLE_ASSIGN(std::unique_ptr<PatternFile> file, parseModule(text, label));
  ModuleOp module = *file->source->module;
  if (module.getOps<attn::PatternOp>().empty())
    return choosePattern(module, label, "").status();
  for (attn::PatternOp pattern : module.getOps<attn::PatternOp>()) {
    PatternFile one;
    one.source = file->source;
    one.label = label;
    one.warnings = file->warnings;
    one.stageTimes = file->stageTimes;
    one.analyse(pattern);
    visit(one);
  }
  return {};
}

Result<std::unique_ptr<PatternFile>> PatternFile::parse(const std::string &text, const std::string &label,
                                                        const std::string &name) {
  HEDDLE_ASSIGN(std::unique_ptr<PatternFile> file, parseModule(text, label));
  HEDDLE_ASSIGN(attn::PatternOp chosen, choosePattern(*file->source->module, label, name));
  file->analyse(chosen);
  return file;
}

void PatternFile::analyse(attn::PatternOp pattern) {
  chosen = pattern;
  timeStage(stageTimes, "analyse", [&] { analyseChosen(); });
}

void PatternFile::analyseChosen() {
  canonicalModule = attn::canonicalPattern(chosen);
  canonicalPattern = *canonicalModule->getOps<attn::PatternOp>().begin();
  analysed = attn::analyze(canonicalPattern);
  if (auto split = attn::withSplitUnion(canonicalPattern, analysed); succeeded(split)) {
    loweredModule = std::move(*split);
    loweredPattern = *loweredModule->getOps<attn::PatternOp>().begin();
    analysed = attn::analyze(lowered());
  }
}

/// "left=7", "left=8k" or, for an f32, "cap=30.5": the word of the value. Nothing: it is no such number.
static std::optional<int64_t> wordIn(const std::string &assignment, bool isReal) {
  size_t equals = assignment.find('=');
  const char *begin = assignment.data() + (equals == std::string::npos ? assignment.size() : equals + 1);
  const char *end = assignment.data() + assignment.size();
  if (!isReal) {
    const std::optional<int64_t> size = parseCount({begin, size_t(end - begin)});
    return size && *size <= std::numeric_limits<int32_t>::max() ? size : std::nullopt;
  }
  float real = 0;
  auto [stop, error] = std::from_chars(begin, end, real);
  if (error != std::errc() || stop != end || begin == end)
    return std::nullopt;
  return std::isfinite(real) ? std::optional<int64_t>(attn::wordOfReal(real)) : std::nullopt;
}

static unsigned indexOf(attn::PatternOp pattern, StringRef name) {
  unsigned index = 0;
  while (index < pattern.getNumArguments() && pattern.getParameterName(index) != name)
    ++index;
  return index;
}

Status PatternFile::checkSizeNames(const std::vector<std::string> &assignments) const {
  attn::PatternOp pattern = chosen;
  std::vector<std::string> known;
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    known.push_back(pattern.getParameterName(i).str());
  for (const std::string &assignment : assignments) {
    const std::string name = assignment.substr(0, assignment.find('='));
    const unsigned index = indexOf(pattern, name);
    if (index == known.size())
      return Status::invalidArgument("pattern '" + pattern.getSymName().str() + "' has no size '" + name + "'" +
                                     orElse(didYouMean(name, known), ",") +
                                     (known.empty() ? " it has none" : " it has: " + llvm::join(known, ", ")));
    if (pattern.isOperand(index))
      return Status::invalidArgument("'" + name + "' of pattern '" + pattern.getSymName().str() +
                                     "' is a tensor: give it with --operand " + name + "=FILE:TENSOR");
  }
  return {};
}

Result<std::vector<int64_t>> PatternFile::bindParameters(const std::vector<std::string> &assignments) const {
  HEDDLE_TRY(checkSizeNames(assignments));
  attn::PatternOp pattern = chosen;
  std::vector<std::optional<int64_t>> given(pattern.getNumArguments());
  for (const std::string &assignment : assignments) {
    const std::string name = assignment.substr(0, assignment.find('='));
    const unsigned index = indexOf(pattern, name);
    given[index] = wordIn(assignment, pattern.isRealParameter(index));
    if (!given[index])
      return Status::invalidArgument("expected " + name + "=NUMBER (32 bits), got '" + assignment + "'");
  }
  return bindWords(pattern, given);
}

Result<AttentionSchedule> PatternFile::schedule() const {
  FailureOr<AttentionSchedule> schedule = buildSchedule(lowered(), analysed);
  if (failed(schedule))
    return Status::invalidArgument(source->diagnostics.take());
  return std::move(*schedule);
}

std::vector<PatternFile::Pass> PatternFile::passes(std::string &whyNone) const {
  attn::ChainedPasses chain = attn::chainedPasses(canonicalPattern, analysed);
  whyNone = std::move(chain.whyNone);
  std::vector<Pass> result;
  for (OwningOpRef<ModuleOp> &owned : chain.modules) {
    Pass &pass = result.emplace_back();
    pass.module = std::move(owned);
    pass.pattern = *pass.module->getOps<attn::PatternOp>().begin();
    pass.analysis = attn::analyze(pass.pattern);
  }
  return result;
}

Result<AttentionSchedule> PatternFile::schedule(const Pass &pass) const {
  FailureOr<AttentionSchedule> schedule = buildSchedule(pass.pattern, pass.analysis);
  if (failed(schedule))
    return Status::invalidArgument(source->diagnostics.take());
  return std::move(*schedule);
}

static std::string textOf(attn::PatternOp pattern) {
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  pattern->print(stream);
  return printed + "\n";
}

std::string PatternFile::text() const { return textOf(chosen); }

Result<std::string> PatternFile::partText() const {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&source->context));
  auto pattern = cast<attn::PatternOp>(attn::PatternOp(chosen)->clone());
  module->push_back(pattern);
  if (failed(attn::makePart(pattern)))
    return Status::unsupported(source->diagnostics.take());
  return textOf(pattern);
}

std::string PatternFile::takeDiagnostics() const { return source->diagnostics.take(); }

/// The bounds of an argument, which generated code relies on, said in one way.
static SmallVector<NamedAttribute> boundsOf(attn::PatternOp pattern, unsigned index) {
  Builder builder(pattern.getContext());
  SmallVector<NamedAttribute> bounds;
  auto bound = [&](StringRef name, Attribute value) { bounds.push_back(builder.getNamedAttr(name, value)); };
  if (pattern.isOperand(index))
    return bounds;
  if (!pattern.isRealParameter(index)) {
    bound("attn.min", builder.getI64IntegerAttr(pattern.getParameterMinimum(index)));
    if (Attribute whole = pattern.getArgAttr(index, attn::kWhole))
      bound(attn::kWhole, whole);
    return bounds;
  }
  bound("attn.min", builder.getF64FloatAttr(pattern.getRealMinimum(index)));
  bound("attn.max", builder.getF64FloatAttr(pattern.getRealMaximum(index)));
  return bounds;
}

/// Drops what changes no code: names, documentation, defaults.
static void stripNames(attn::PatternOp pattern) {
  pattern.setSymName("pattern");
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    pattern.setArgAttrs(i, boundsOf(pattern, i));
}

/// The op and what it reads, before it, as far as `placed` lacks them.
static void placeBehindItsOperands(Operation *op, SetVector<Operation *> &placed) {
  if (placed.contains(op))
    return;
  op->walk([&](Operation *nested) { // predicates and score maps have regions
    for (Value operand : nested->getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && maker->getBlock() == op->getBlock())
        placeBehindItsOperands(maker, placed);
  });
  placed.insert(op);
}

/// Ops in the order in which the last one needs them, whatever the order of writing.
static void orderByUse(attn::PatternOp pattern) {
  Block &body = pattern.getBody().front();
  SetVector<Operation *> placed;
  placeBehindItsOperands(body.getTerminator(), placed);
  for (Operation *op : placed)
    op->moveBefore(&body, body.end());
}

Result<std::string> PatternFile::digest() const {
  OwningOpRef<ModuleOp> copy = ModuleOp::create(UnknownLoc::get(&source->context));
  auto pattern = cast<attn::PatternOp>(attn::PatternOp(canonicalPattern)->clone());
  copy->push_back(pattern);
  PassManager passes(&source->context);
  OpPassManager &nested = passes.nest<attn::PatternOp>();
  nested.addPass(attn::createAttnNormalize());
  nested.addPass(createCanonicalizerPass());
  nested.addPass(createCSEPass());
  if (failed(passes.run(*copy)))
    return Status::internal("the pattern could not be normalised: " + source->diagnostics.take());
  stripNames(pattern);
  orderByUse(pattern);
  std::string text;
  llvm::raw_string_ostream stream(text);
  copy->print(stream, OpPrintingFlags().printGenericOpForm());
  return sha256Hex("attn-normal-form-4\n" + text);
}

PatternRates ratesOf(const PatternFile &file, const PassesOfFile &passes) {
  AnalysedPattern analysed{file.pattern(), file.lowered(), file.analysis(), {}, passes.whyNone, std::nullopt};
  for (const PatternFile::Pass &pass : passes.passes)
    analysed.passes.push_back(&pass.analysis);
  std::vector<std::string> wholes;
  for (int64_t argument : wholesOf(analysed.pattern))
    wholes.push_back(analysed.pattern.getParameterName(unsigned(argument)).str() + "=" + std::to_string(kGuessedRows));
  if (Result<std::vector<int64_t>> defaults = file.bindParameters(wholes))
    analysed.defaults = *defaults;
  return ratesOf(analysed);
}

} // namespace heddle
