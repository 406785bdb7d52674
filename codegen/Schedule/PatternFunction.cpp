#include "codegen/Schedule/PatternFunction.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace heddle {
namespace {

using Row = PatternFunction;
using P = FunctionPresence;
using R = PatternResult;

constexpr Row kTable[] = {
    {"pattern_variant", P::Always, true, {}, R::i32, "variant", "int"},
    {"pattern_query_rate", P::Always, false, {"variant"}, R::i32, "queryRate", "int"},
    {"pattern_key_rate", P::Always, false, {"variant", "branch"}, R::i32, "keyRate", "int"},
    {"pattern_key_residue", P::Always, true, {"variant", "branch", "tile_first"}, R::i32, "keyResidue", "int"},
    {"pattern_next_range",
     P::Always,
     true,
     {"variant", "branch", "tile_first", "tile_last", "block_n", "from", "out"},
     R::none,
     "nextRange",
     "KeyRange"},
    {"pattern_keep", P::Always, true, {"branch", "q_position", "k_position"}, R::i1, "keep", "bool"},
    {"pattern_kept_columns",
     P::ForText,
     true,
     {"variant", "branch", "q_position", "first_position"},
     R::i32,
     "keptColumns",
     "uint32_t",
     true},
    {"pattern_band_columns",
     P::ForText,
     true,
     {"variant", "branch", "q_position", "first_position"},
     R::i32,
     "bandColumns",
     "uint32_t",
     true},
    {"pattern_score_document", P::Optional, true, {"q_position"}, R::i32, "scoreDocument", "int"},
    {"pattern_score",
     P::WithScore,
     true,
     {"q_position", "k_position", kScoreDocument, "score"},
     R::f32,
     "score",
     "float"},
    {"pattern_score_gradient",
     P::Optional,
     true,
     {"q_position", "k_position", kScoreDocument, "score"},
     R::f32,
     "scoreGradient",
     "float"},
    {"pattern_sink", P::WithSink, true, {}, R::f32, "sink", "float"},
    {"pattern_document_count", P::ForText, true, {}, R::i32, "documentCount", "int"},
    {"pattern_document_row", P::ForText, true, {"document"}, R::i32, "documentRow", "int"},
    {"pattern_argument_gradient_",
     P::ByArgument,
     true,
     {"q_position", "k_position", kScoreDocument, "score"},
     R::f32,
     "derivative",
     "float"},
    {"pattern_argument_place_",
     P::ByArgument,
     true,
     {"q_position", "k_position", kScoreDocument},
     R::i64,
     "place",
     "int64_t"},
    {"pattern_transposed_key_rate", P::WithKeyTiles, false, {"variant"}, R::i32, "keyRate", "int"},
    {"pattern_transposed_query_rate", P::WithKeyTiles, false, {"variant", "branch"}, R::i32, "queryRate", "int"},
    {"pattern_transposed_query_residue",
     P::WithKeyTiles,
     true,
     {"variant", "branch", "tile_first"},
     R::i32,
     "queryResidue",
     "int"},
    {"pattern_transposed_next_range",
     P::WithKeyTiles,
     true,
     {"variant", "branch", "tile_first", "tile_last", "block_m", "from", "out"},
     R::none,
     "nextRange",
     "KeyRange"},
    {"pattern_transposed_kept_columns",
     P::ForText,
     true,
     {"variant", "branch", "k_position", "first_position"},
     R::i32,
     "keptColumns",
     "uint32_t",
     true},
    {"pattern_transposed_band_columns",
     P::ForText,
     true,
     {"variant", "branch", "k_position", "first_position"},
     R::i32,
     "bandColumns",
     "uint32_t",
     true},
};

static_assert(std::size(kTable) == size_t(Generated::TransposedBandColumns) + 1, "a row for each name");

} // namespace

llvm::ArrayRef<PatternFunction> patternFunctions() { return kTable; }
const PatternFunction &patternFunction(Generated which) { return kTable[size_t(which)]; }

std::string symbolOf(Generated which, int argument) { return patternFunction(which).symbol + std::to_string(argument); }

bool hasFunction(ModuleOp module, Generated which) {
  return bool(module.lookupSymbol<func::FuncOp>(patternFunction(which).symbol));
}

SmallVector<Type> extraTypes(MLIRContext *context, const PatternFunction &function) {
  Type i32 = IntegerType::get(context, 32);
  SmallVector<Type> types;
  for (llvm::StringRef name : function.extra())
    types.push_back(name == "out"     ? Type(MemRefType::get({5}, i32))
                    : name == "score" ? Type(Float32Type::get(context))
                                      : i32);
  return types;
}

SmallVector<Type> resultTypes(MLIRContext *context, const PatternFunction &function) {
  switch (function.result) {
  case PatternResult::none:
    return {};
  case PatternResult::i1:
    return {IntegerType::get(context, 1)};
  case PatternResult::i32:
    return {IntegerType::get(context, 32)};
  case PatternResult::i64:
    return {IntegerType::get(context, 64)};
  case PatternResult::f32:
    return {Float32Type::get(context)};
  }
  llvm_unreachable("a result of no type");
}

} // namespace heddle
