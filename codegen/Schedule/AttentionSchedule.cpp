// One function of docs/architecture.md, section 2, per builder below.
#include "codegen/Schedule/AttentionSchedule.h"
#include "codegen/Schedule/FunctionBuilder.h"
#include "codegen/Schedule/RangeFunction.h"
#include "codegen/Schedule/ScoreFunction.h"
#include "codegen/Schedule/WordBuilder.h"
#include "dialect/Geometry/Grain.h"
#include "dialect/IR/PatternOperands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
namespace arith = mlir::arith;

namespace heddle {
namespace {

/// Rows are those of tiles, columns what they visit: queries and keys, or, transposed, keys and queries.
class FunctionModule {
public:
  FunctionModule(ModuleOp module, attn::PatternOp pattern, const attn::PatternAnalysis &analysis,
                 attn::Direction direction)
      : module(module), pattern(pattern), analysis(analysis), direction(direction),
        functions(isForward() ? kQueryTiles : kKeyTiles), i32(IntegerType::get(pattern.getContext(), 32)),
        i1(IntegerType::get(pattern.getContext(), 1)) {}

  /// Those that only the forward direction has serve both.
  void build() {
    if (isForward())
      buildVariant();
    buildRowRate();
    buildColumnRate();
    buildColumnResidue();
    buildNextRangeDispatch();
    if (isForward())
      buildKeep();
    buildKeptColumns();
    buildBandColumns();
    if (auto below = module.lookupSymbol<func::FuncOp>(kColumnsBelow);
        below && SymbolTable::symbolKnownUseEmpty(below, module))
      below.erase();
  }

private:
  unsigned parameterCount() { return pattern.getNumArguments(); }
  unsigned variantCount() const { return analysis.variants.size(); }
  unsigned branchCount() const { return analysis.variants[0].branches.size(); }
  bool isForward() const { return direction == attn::Direction::Forward; }
  const attn::VariantRanges &ranges(unsigned variant) const { return analysis.variants[variant].ranges(direction); }

  FunctionBuilder start(Generated which) { return FunctionBuilder(module, patternFunction(which), pattern); }

  /// The index into a list of distinct values.
  void buildVariant() {
    FunctionBuilder f = start(Generated::Variant);
    attn::ExprBuilder expressions(f.builder, f.loc, [&](attn::Symbol symbol) { return f.contextSymbol(symbol); });
    f.finish(expressions.integer(analysis.variantOfHead));
  }

  void buildRowRate() {
    FunctionBuilder f = start(functions.rowRate);
    f.finish(f.choose(f.extra(0), variantCount(), i32, [&](unsigned v) { return f.constant(ranges(v).rowRate); }));
  }

  void buildColumnRate() {
    FunctionBuilder f = start(functions.columnRate);
    f.finish(forEachBranch(f, f.extra(0), f.extra(1), i32,
                           [&](unsigned v, unsigned b) { return f.constant(ranges(v).branches[b].columnRate); }));
  }

  void buildColumnResidue() {
    FunctionBuilder f = start(functions.columnResidue);
    f.finish(forEachBranch(f, f.extra(0), f.extra(1), i32, [&](unsigned v, unsigned b) {
      attn::ExprBuilder expressions(f.builder, f.loc, [&](attn::Symbol symbol) {
        return symbol.kind == attn::Symbol::TileFirst ? f.extra(2) : f.contextSymbol(symbol);
      });
      return expressions.integer(ranges(v).branches[b].columnResidue);
    }));
  }

  Value forEachBranch(FunctionBuilder &f, Value variant, Value branch, Type type,
                      function_ref<Value(unsigned, unsigned)> makeValue) {
    return f.choose(variant, variantCount(), type, [&](unsigned v) {
      return f.choose(branch, branchCount(), type, [&](unsigned b) { return makeValue(v, b); });
    });
  }

  void buildNextRangeDispatch() {
    FunctionBuilder f = start(functions.nextRange);
    TileArguments tile{f.extra(2), f.extra(3), f.extra(4), f.extra(5)};
    f.dispatch(f.extra(0), variantCount(), [&](unsigned v) {
      f.dispatch(f.extra(1), branchCount(), [&](unsigned b) {
        ColumnRun run = buildNextRange(f, ranges(v).branches[b], tile);
        store(f, {run.begin, run.end, run.fullBegin, run.fullEnd, run.reach}, f.extra(6));
      });
    });
    f.finish();
  }

  void store(FunctionBuilder &f, ArrayRef<Value> values, Value out) {
    for (auto [index, value] : llvm::enumerate(values)) {
      Value place = arith::ConstantIndexOp::create(f.builder, f.loc, index);
      memref::StoreOp::create(f.builder, f.loc, value, out, place);
    }
  }

  void buildKeep() {
    FunctionBuilder f = start(Generated::Keep);
    attn::ExprBuilder expressions(f.builder, f.loc, [&](attn::Symbol symbol) { return f.contextSymbol(symbol); });
    Value variant = expressions.integer(analysis.variantOfHead);
    const attn::ArgumentValues arguments = f.argumentValues(/*asReals=*/false);
    f.finish(forEachBranch(f, variant, f.extra(0), i1, [&](unsigned v, unsigned b) {
      return buildBranchPredicate(f, analysis.variants[v], b, {f.extra(1), f.extra(2)}, arguments);
    }));
  }

  /// Left out if no branch has words for all variants.
  void buildKeptColumns() {
    FunctionBuilder f = start(functions.keptColumns);
    declareColumnsBelow(f);
    SmallVector<bool> hasWords(branchCount(), true);
    f.finish(forEachBranch(f, f.extra(0), f.extra(1), i32, [&](unsigned v, unsigned b) -> Value {
      auto keeps = [&](FunctionBuilder &predicate, Pair position) {
        return buildBranchPredicate(predicate, analysis.variants[v], b, position,
                                    predicate.argumentValues(/*asReals=*/false));
      };
      if (Value word = columnWord(f, v, b, keeps))
        return word;
      hasWords[b] = false;
      return f.constant(0);
    }));
    f.function->setAttr(kBranches, f.builder.getDenseBoolArrayAttr(hasWords));
    if (!llvm::is_contained(hasWords, true))
      f.function.erase();
  }

  /// Only where squares of the pattern are cut by a band (Grain.h), which always has words.
  void buildBandColumns() {
    const attn::BandedGrain banded = attn::bandedGrainOf(analysis, direction);
    if (banded.grain == 1)
      return;
    FunctionBuilder f = start(functions.bandColumns);
    declareColumnsBelow(f);
    f.finish(forEachBranch(f, f.extra(0), f.extra(1), i32, [&](unsigned v, unsigned b) -> Value {
      return columnWord(f, v, b, [&](FunctionBuilder &predicate, Pair position) {
        return isInBand(predicate, banded.bands[v][b], position);
      });
    }));
  }

  void declareColumnsBelow(FunctionBuilder &f) {
    if (module.lookupSymbol(kColumnsBelow))
      return;
    auto below = func::FuncOp::create(f.loc, kColumnsBelow, f.builder.getFunctionType(i32, i32));
    below.setPrivate();
    module.push_back(below);
  }

  struct Pair {
    Value q, k;
  };
  using PairPredicate = llvm::function_ref<Value(FunctionBuilder &, Pair)>;

  /// The word of a branch, in the function of words `f`; null if there is none.
  Value columnWord(FunctionBuilder &f, unsigned v, unsigned b, PairPredicate keeps) {
    OwningOpRef<ModuleOp> scratch = ModuleOp::create(f.loc);
    func::FuncOp predicate = buildColumnPredicate(*scratch, v, b, keeps);
    SmallVector<Value> arguments(f.function.getArguments().drop_back(4)); // the context
    arguments.append({f.extra(2), f.extra(3)});
    return buildColumnWord(f.builder, predicate, arguments, lowestParameters());
  }

  Value isInBand(FunctionBuilder &f, const attn::Interval &band, Pair position) {
    attn::ExprBuilder expressions(f.builder, f.loc, [&](attn::Symbol symbol) { return f.contextSymbol(symbol); });
    Value ahead = arith::SubIOp::create(f.builder, f.loc, position.k, position.q), isInside;
    auto holds = [&](arith::CmpIPredicate relation, const attn::IntExpr &bound) {
      Value condition = arith::CmpIOp::create(f.builder, f.loc, relation, ahead, expressions.integer(bound));
      isInside = isInside ? arith::AndIOp::create(f.builder, f.loc, isInside, condition).getResult() : condition;
    };
    if (band.lower)
      holds(arith::CmpIPredicate::sge, band.lower);
    if (band.upper)
      holds(arith::CmpIPredicate::sle, band.upper);
    return isInside ? isInside : arith::ConstantOp::create(f.builder, f.loc, f.builder.getBoolAttr(true)).getResult();
  }

  /// (CTX, position of the row, first_position, column) -> i1: the column exists and `keeps` says so of the pair.
  func::FuncOp buildColumnPredicate(ModuleOp scratch, unsigned v, unsigned b, PairPredicate keeps) {
    FunctionBuilder f(scratch, "keeps_column", pattern, {true, {i32, i32, i32}, {i1}});
    Value ahead = arith::MulIOp::create(f.builder, f.loc, f.extra(2), f.constant(ranges(v).branches[b].columnRate));
    Value column = arith::AddIOp::create(f.builder, f.loc, f.extra(1), ahead);
    Value end = arith::AddIOp::create(f.builder, f.loc,
                                      f.context(isForward() ? FunctionBuilder::KOrigin : FunctionBuilder::QOrigin),
                                      f.context(isForward() ? FunctionBuilder::SeqlenK : FunctionBuilder::SeqlenQ));
    Value exists = arith::CmpIOp::create(f.builder, f.loc, arith::CmpIPredicate::slt, column, end);
    Value kept = keeps(f, isForward() ? Pair{f.extra(0), column} : Pair{column, f.extra(0)});
    f.finish(arith::AndIOp::create(f.builder, f.loc, exists, kept).getResult());
    return f.function;
  }

  SmallVector<int64_t> lowestParameters() {
    SmallVector<int64_t> lowest;
    for (unsigned index = 0; index < parameterCount(); ++index)
      lowest.push_back(pattern.getParameterMinimum(index));
    return lowest;
  }

  Value buildBranchPredicate(FunctionBuilder &f, const attn::Variant &variant, unsigned branch, Pair position,
                             const attn::ArgumentValues &arguments) {
    using Context = FunctionBuilder;
    attn::ExprBuilder expressions(f.builder, f.loc, [&](attn::Symbol symbol) { return f.contextSymbol(symbol); });
    const attn::IntExpr ends[] = {attn::endOf(pattern, attn::WholeAxis::Queries),
                                  attn::endOf(pattern, attn::WholeAxis::Keys)}; // they outlive `expressions`
    Value endQ = expressions.integer(ends[0]), endK = expressions.integer(ends[1]);
    attn::PredicateFrame frame{f.builder,
                               f.loc,
                               position.q,
                               position.k,
                               endQ,
                               endK,
                               f.context(Context::Batch),
                               f.context(Context::Head),
                               f.context(Context::Heads),
                               /*group=*/0,
                               &variant.groupOfCount,
                               &arguments,
                               f.context(Context::QOrigin),
                               /*isOfKey=*/!isForward()};
    attn::SoftmaxOp softmax = pattern.getSoftmax();
    auto predicate = [&](Value mask) { return mask.getDefiningOp<attn::MaskOpInterface>().buildPredicate(frame); };
    if (softmax.getCombine() == attn::Combine::lse)
      return predicate(softmax.getBranches()[branch]);
    Value kept = predicate(softmax.getBranches()[0]);
    for (Value mask : softmax.getBranches().drop_front())
      kept = frame.either(kept, predicate(mask));
    return kept;
  }

  ModuleOp module;
  attn::PatternOp pattern;
  const attn::PatternAnalysis &analysis;
  attn::Direction direction;
  const WalkFunctions &functions;
  Type i32, i1;
};

/// Folds what the builders leave, so that the text that people read is short.
LogicalResult simplify(ModuleOp module) {
  if (failed(verify(module)))
    return failure();
  PassManager passes(module.getContext());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createCanonicalizerPass());
  return passes.run(module);
}

} // namespace

void loadScheduleDialects(MLIRContext &context) {
  context.loadDialect<attn::AttnDialect, arith::ArithDialect, func::FuncDialect, math::MathDialect,
                      memref::MemRefDialect, scf::SCFDialect>();
}

static std::optional<ScheduleOperand> operandOf(attn::PatternOp pattern, unsigned index) {
  if (!pattern.isOperand(index))
    return std::nullopt;
  auto type = cast<MemRefType>(pattern.getArgumentTypes()[index]);
  return ScheduleOperand{*attn::elementOf(type.getElementType()), attn::lengthDimension(pattern, index).has_value()};
}

FailureOr<AttentionSchedule> buildSchedule(attn::PatternOp pattern, const attn::PatternAnalysis &analysis) {
  AttentionSchedule schedule;
  schedule.name = pattern.getSymName().str();
  schedule.qOrigin = pattern.getQOrigin();
  schedule.branchCount = analysis.variants[0].branches.size();
  for (unsigned index = 0; index < pattern.getNumArguments(); ++index)
    schedule.parameters.push_back({pattern.getParameterName(index).str(), pattern.getParameterDoc(index).str(),
                                   pattern.getParameterDefault(index), pattern.getParameterMinimum(index),
                                   pattern.isRealParameter(index), pattern.getRealMinimum(index),
                                   pattern.getRealMaximum(index), operandOf(pattern, index)});
  for (const attn::Variant &variant : analysis.variants) {
    ScheduleVariant &row = schedule.variants.emplace_back();
    row.queryRate = variant.forward.rowRate;
    for (const attn::BranchRanges &branch : variant.forward.branches)
      row.branches.push_back({branch.columnRate, branch.masked, branch.reason});
  }
  schedule.functions = ModuleOp::create(pattern.getLoc());
  FunctionModule(*schedule.functions, pattern, analysis, attn::Direction::Forward).build();
  schedule.hasScore = appendScoreFunction(*schedule.functions, pattern);
  schedule.hasSink = appendSinkFunction(*schedule.functions, pattern);
  if (Value sink = pattern.getSoftmax().getDynamicSink())
    schedule.sinkArgument = int(cast<BlockArgument>(sink).getArgNumber());
  schedule.isDetached = pattern.getSoftmax().isDetached();
  appendDocumentFunctions(*schedule.functions, pattern);
  if (failed(simplify(*schedule.functions)))
    return failure();
  return schedule;
}

LogicalResult appendBackwardFunctions(ModuleOp functions, attn::PatternOp pattern,
                                      const attn::PatternAnalysis &analysis) {
  appendScoreGradient(functions, pattern);
  appendArgumentGradients(functions, pattern);
  return appendTransposedFunctions(functions, pattern, analysis);
}

LogicalResult appendTransposedFunctions(ModuleOp functions, attn::PatternOp pattern,
                                        const attn::PatternAnalysis &analysis) {
  FunctionModule(functions, pattern, analysis, attn::Direction::Transposed).build();
  return simplify(functions);
}

} // namespace heddle
