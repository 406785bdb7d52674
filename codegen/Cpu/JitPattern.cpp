// Compiles a copy of the module, with bridges through which plain C++ calls its functions.
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Cpu/Bridge.h"
#include "codegen/Cpu/MachineCode.h"
#include "codegen/Emit/PatternInfo.h"
#include "codegen/Emit/PatternModule.h"
#include <algorithm>
#include <cstddef>
#include <limits>

using namespace mlir;

namespace heddle {

static_assert(offsetof(JitContext, params) == 7 * sizeof(int32_t),
              "the compiled code reads the context as one run of words");
static_assert(offsetof(JitContext, operands) == contextPointerOffset, "the compiled code finds pointers there");

struct JitPattern::Code {
  using Context = const int32_t *;
  // The functions of one direction, its rows and columns.
  struct Walk {
    int32_t (*rowRate)(int32_t) = nullptr;
    int32_t (*columnRate)(int32_t, int32_t) = nullptr;
    int32_t (*columnResidue)(Context, int32_t, int32_t, int32_t) = nullptr;
    void (*nextRange)(Context, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t *) = nullptr;

    JitKeyRange next(const JitContext &context, const JitTile &tile, int32_t from) const {
      int32_t out[5];
      nextRange(reinterpret_cast<Context>(&context), tile.variant, tile.branch, tile.first, tile.last, tile.block, from,
                out);
      return {out[0], out[1], out[2], out[3], out[4]};
    }
  };
  Code(const PatternInfo &info, MachineCode machine) : info(info), machine(std::move(machine)) {}
  PatternInfo info;
  MachineCode machine;
  int32_t (*variant)(Context) = nullptr;
  Walk queries, keys; // tiles of
  int32_t (*keep)(Context, int32_t, int32_t, int32_t) = nullptr;
  void (*keepRow)(Context, int32_t, int32_t, int32_t, int32_t, int32_t, uint8_t *) = nullptr;
  void (*keepColumn)(Context, int32_t, int32_t, int32_t, int32_t, int32_t, uint8_t *) = nullptr;
  float (*score)(Context, int32_t, int32_t, float) = nullptr;
  using ScoreLine = void (*)(Context, int32_t, int32_t, int32_t, int32_t, float *);
  ScoreLine scoreColumn = nullptr, scoreRow = nullptr, scoreGradientColumn = nullptr, scoreGradientRow = nullptr;
  struct Argument {
    ScoreLine gradient = nullptr;
    void (*place)(Context, int32_t, int32_t, int32_t, int32_t, int64_t *) = nullptr;
  };
  std::vector<Argument> arguments; // of the pattern
  float (*scoreGradient)(Context, int32_t, int32_t, float) = nullptr;
  float (*sink)(Context) = nullptr;
};

namespace {

template <class Function>
llvm::Error resolve(const MachineCode &machine, const std::string &symbol, Function *&function) {
  llvm::Expected<void *> address = machine.address(symbol);
  if (!address)
    return address.takeError();
  function = reinterpret_cast<Function *>(*address);
  return llvm::Error::success();
}

template <class Code> llvm::Error resolveAll(Code &code, ModuleOp module) {
  llvm::Error errors = llvm::Error::success();
  auto add = [&](const std::string &symbol, auto &function) {
    errors = llvm::joinErrors(std::move(errors), resolve(code.machine, symbol, function));
  };
  auto addEntry = [&](Generated which, auto &function) { add(bridgeSymbol(patternFunction(which).symbol), function); };
  addEntry(Generated::Variant, code.variant);
  auto addWalk = [&](auto &walk, const WalkFunctions &functions) {
    addEntry(functions.rowRate, walk.rowRate);
    addEntry(functions.columnRate, walk.columnRate);
    addEntry(functions.columnResidue, walk.columnResidue);
    addEntry(functions.nextRange, walk.nextRange);
  };
  addWalk(code.queries, kQueryTiles);
  if (hasKeyTiles(module))
    addWalk(code.keys, kKeyTiles);
  addEntry(Generated::Keep, code.keep);
  add(keepRowSymbol, code.keepRow);
  add(keepColumnSymbol, code.keepColumn);
  if (code.info.hasScore) {
    addEntry(Generated::Score, code.score);
    add(scoreColumnSymbol, code.scoreColumn);
  }
  if (hasFunction(module, Generated::ScoreGradient)) {
    addEntry(Generated::ScoreGradient, code.scoreGradient);
    add(scoreRowSymbol, code.scoreRow);
    add(scoreGradientColumnSymbol, code.scoreGradientColumn);
    add(scoreGradientRowSymbol, code.scoreGradientRow);
  }
  code.arguments.resize(size_t(code.info.paramCount));
  for (int argument = 0; argument < code.info.paramCount; ++argument)
    if (module.lookupSymbol(symbolOf(Generated::ArgumentGradient, argument))) {
      add(columnSymbol(Generated::ArgumentGradient, argument), code.arguments[size_t(argument)].gradient);
      add(columnSymbol(Generated::ArgumentPlace, argument), code.arguments[size_t(argument)].place);
    }
  if (code.info.hasSink)
    addEntry(Generated::Sink, code.sink);
  return errors;
}

/// What computes scores of many pairs, or derivatives of them.
std::vector<std::string> scoreLoops(ModuleOp lowered, const PatternInfo &info) {
  std::vector<std::string> loops = {scoreColumnSymbol, scoreRowSymbol, scoreGradientColumnSymbol,
                                    scoreGradientRowSymbol};
  for (int argument = 0; argument < info.paramCount; ++argument)
    for (const Generated each : {Generated::ArgumentGradient, Generated::ArgumentPlace})
      loops.push_back(columnSymbol(each, argument));
  loops.erase(
      std::remove_if(loops.begin(), loops.end(), [&](const std::string &name) { return !lowered.lookupSymbol(name); }),
      loops.end());
  return loops;
}

const int32_t *words(const JitContext &context) { return reinterpret_cast<const int32_t *>(&context); }

} // namespace

FailureOr<JitPattern> JitPattern::create(ModuleOp module, const PatternInfo &info) {
  if (failed(verifyPatternModule(module, info)))
    return failure();
  if (info.paramCount > JitContext::kMaxParams)
    return module.emitError() << "pattern '" << info.name << "': expected at most " << JitContext::kMaxParams
                              << " run-time sizes, got " << info.paramCount;
  if (info.operands.size() > JitContext::kMaxOperands)
    return module.emitError() << "pattern '" << info.name << "': expected at most " << JitContext::kMaxOperands
                              << " tensors, got " << info.operands.size();
  loadMachineDialects(module.getContext());
  OwningOpRef<ModuleOp> lowered = module.clone();
  dropTextFunctions(*lowered);
  addBridgeFunctions(*lowered, info);
  if (failed(lowerToLlvm(*lowered)))
    return failure();
  llvm::Expected<MachineCode> machine = MachineCode::compile(*lowered, scoreLoops(*lowered, info));
  if (!machine)
    return module.emitError() << "pattern '" << info.name
                              << "': compilation for the CPU failed: " << llvm::toString(machine.takeError());
  auto code = std::make_shared<Code>(info, std::move(*machine));
  if (llvm::Error error = resolveAll(*code, module))
    return module.emitError() << "pattern '" << info.name << "': " << llvm::toString(std::move(error));
  return JitPattern(std::move(code));
}

const PatternInfo &JitPattern::info() const { return code->info; }

int32_t JitPattern::variant(const JitContext &context) const { return code->variant(words(context)); }

int32_t JitPattern::queryRate(int32_t variant) const { return code->queries.rowRate(variant); }

int32_t JitPattern::keyRate(int32_t variant, int32_t branch) const { return code->queries.columnRate(variant, branch); }

int32_t JitPattern::keyResidue(const JitContext &context, int32_t variant, int32_t branch, int32_t tileFirst) const {
  return code->queries.columnResidue(words(context), variant, branch, tileFirst);
}

JitKeyRange JitPattern::nextRange(const JitContext &context, const JitTile &tile, int32_t from) const {
  return code->queries.next(context, tile, from);
}

bool JitPattern::isTransposed() const { return code->keys.rowRate != nullptr; }

int32_t JitPattern::transposedKeyRate(int32_t variant) const { return code->keys.rowRate(variant); }

int32_t JitPattern::transposedQueryRate(int32_t variant, int32_t branch) const {
  return code->keys.columnRate(variant, branch);
}

int32_t JitPattern::transposedQueryResidue(const JitContext &context, int32_t variant, int32_t branch,
                                           int32_t tileFirst) const {
  return code->keys.columnResidue(words(context), variant, branch, tileFirst);
}

JitKeyRange JitPattern::transposedNextRange(const JitContext &context, const JitTile &tile, int32_t from) const {
  return code->keys.next(context, tile, from);
}

bool JitPattern::keep(const JitContext &context, int32_t branch, int32_t q, int32_t k) const {
  return code->keep(words(context), branch, q, k) != 0;
}

void JitPattern::keepRow(const JitContext &context, const JitKeepLine &line, uint8_t *out) const {
  code->keepRow(words(context), line.branch, line.q, line.k, line.step, line.count, out);
}

void JitPattern::keepColumn(const JitContext &context, const JitKeepLine &line, uint8_t *out) const {
  code->keepColumn(words(context), line.branch, line.q, line.k, line.step, line.count, out);
}

float JitPattern::score(const JitContext &context, int32_t q, int32_t k, float score) const {
  return code->score ? code->score(words(context), q, k, score) : score;
}

float JitPattern::scoreGradient(const JitContext &context, int32_t q, int32_t k, float score) const {
  return code->scoreGradient ? code->scoreGradient(words(context), q, k, score) : 1.0f;
}

float JitPattern::sink(const JitContext &context) const {
  return code->sink ? code->sink(words(context)) : -std::numeric_limits<float>::infinity();
}

template <class Function, class Number>
static void callLine(Function *function, const JitContext &context, const JitKeepLine &line, Number *numbers) {
  if (function)
    function(words(context), line.q, line.k, line.step, line.count, numbers);
}

bool JitPattern::hasArgumentGradient(int argument) const { return code->arguments.at(size_t(argument)).gradient; }
void JitPattern::argumentGradientColumn(const JitContext &context, int argument, const JitKeepLine &line,
                                        float *scores) const {
  callLine(code->arguments[size_t(argument)].gradient, context, line, scores);
}
void JitPattern::argumentPlaceColumn(const JitContext &context, int argument, const JitKeepLine &line,
                                     int64_t *places) const {
  callLine(code->arguments[size_t(argument)].place, context, line, places);
}

void JitPattern::scoreColumn(const JitContext &context, const JitKeepLine &line, float *scores) const {
  callLine(code->scoreColumn, context, line, scores);
}
void JitPattern::scoreRow(const JitContext &context, const JitKeepLine &line, float *scores) const {
  callLine(code->scoreRow, context, line, scores);
}
void JitPattern::scoreGradientColumn(const JitContext &context, const JitKeepLine &line, float *gradients) const {
  callLine(code->scoreGradientColumn, context, line, gradients);
}
void JitPattern::scoreGradientRow(const JitContext &context, const JitKeepLine &line, float *gradients) const {
  callLine(code->scoreGradientRow, context, line, gradients);
}

} // namespace heddle
