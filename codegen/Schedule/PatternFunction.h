// Owns the one table of the functions that are generated for a pattern (docs/architecture.md, section 2): their names,
// arguments and types, who has them, and the methods of device code that call them. What builds functions, checks
// modules of them, writes their text and compiles them for this machine reads this table.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"

#include <array>
#include <string>

namespace heddle {

enum class PatternResult : uint8_t { none, i1, i32, i64, f32 };

/// Which modules have a function.
enum class FunctionPresence : uint8_t {
  Always,
  WithScore,    ///< patterns whose chain changes scores
  WithSink,     ///< patterns with a key without a value
  WithKeyTiles, ///< modules for kernels that walk tiles of keys: all of these or none
  Optional,     ///< any module may lack it
  ForText,      ///< likewise, and only kernels ask for it
  ByArgument    ///< modules for backward passes, one for each argument that scores have a derivative by
};

/// `arguments` follow the context where the function takes one: "out" is the memref<5xi32> that receives a range,
/// "score" an f32, every other argument an i32. The tensors of the context are memrefs without an end
/// (dialect/IR/Operands.h).
struct PatternFunction {
  const char *symbol; ///< ByArgument: the number of the argument follows
  FunctionPresence presence;
  bool takesContext;
  std::array<const char *, 7> arguments;
  PatternResult result;
  const char *method, *methodResult; ///< of Pattern, TransposedPattern or ArgumentGradient
  bool isTemplate = false;           ///< over the columns that a skeleton counts: the text of kept columns

  /// Those that there are.
  llvm::ArrayRef<const char *> extra() const {
    size_t count = 0;
    while (count < arguments.size() && arguments[count])
      ++count;
    return {arguments.data(), count};
  }
};

/// The document of a query, which functions of its pairs take, so that it is looked up once; says nothing in patterns
/// whose scores count no positions inside documents.
inline constexpr const char *kScoreDocument = "score_document";

/// The rows of the table, in its order: that of the methods of Pattern, then of TransposedPattern.
enum class Generated : uint8_t {
  Variant,
  QueryRate,
  KeyRate,
  KeyResidue,
  NextRange,
  Keep,
  KeptColumns, ///< of a tile, as one word; its attribute kBranches says for which branches it answers
  BandColumns, ///< the same for the band of positions that alone cuts the squares of a pattern (dialect/Geometry/Grain.h)
  ScoreDocument,
  Score,
  ScoreGradient, ///< by scale * <q, k>
  Sink,
  DocumentCount, ///< of documents that the rows lie in; with DocumentRow
  DocumentRow,
  ArgumentGradient, ///< of scores
  ArgumentPlace,    ///< of the element that a pair reads
  TransposedKeyRate,
  TransposedQueryRate,
  TransposedQueryResidue,
  TransposedNextRange,
  TransposedKeptColumns,
  TransposedBandColumns
};

llvm::ArrayRef<PatternFunction> patternFunctions();
const PatternFunction &patternFunction(Generated which);

/// The functions of one direction: rows are those of tiles, columns what they visit.
struct WalkFunctions {
  Generated rowRate, columnRate, columnResidue, nextRange, keptColumns, bandColumns;
};
inline constexpr WalkFunctions kQueryTiles = {Generated::QueryRate, Generated::KeyRate,     Generated::KeyResidue,
                                              Generated::NextRange, Generated::KeptColumns, Generated::BandColumns};
inline constexpr WalkFunctions kKeyTiles = {Generated::TransposedKeyRate,      Generated::TransposedQueryRate,
                                            Generated::TransposedQueryResidue, Generated::TransposedNextRange,
                                            Generated::TransposedKeptColumns,  Generated::TransposedBandColumns};

/// The name of the function, of an argument of the pattern where it is ByArgument.
std::string symbolOf(Generated which, int argument);

bool hasFunction(mlir::ModuleOp module, Generated which);

/// The types behind the context, and the results.
llvm::SmallVector<mlir::Type> extraTypes(mlir::MLIRContext *context, const PatternFunction &function);
llvm::SmallVector<mlir::Type> resultTypes(mlir::MLIRContext *context, const PatternFunction &function);

/// The attribute of a function of kept columns.
inline constexpr llvm::StringLiteral kBranches = "heddle.branches";
/// What functions of kept columns call, which only the text has: a skeleton defines it.
inline constexpr llvm::StringLiteral kColumnsBelow = "columns_below";

} // namespace heddle
