// Owns the calling convention of pattern functions: the leading context arguments and how symbols of the analysis
// map to arguments. Shared by the builders of ranges, classes and predicates.
#pragma once

#include "codegen/Schedule/PatternFunction.h"
#include "dialect/IR/Attn.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace heddle {

struct FunctionShape {
  bool hasContext;
  llvm::SmallVector<mlir::Type> extra, results; ///< arguments behind the context
};

/// Builds `func.func @name(CTX, extra...)` and gives access to its arguments.
class FunctionBuilder {
public:
  /// Order of the context arguments; run-time sizes follow, then tensor operands.
  enum ContextArgument : unsigned { Batch, Head, Heads, SeqlenQ, SeqlenK, QOrigin, KOrigin, FirstParameter };

  /// Begins a function of `pattern`.
  FunctionBuilder(mlir::ModuleOp module, llvm::StringRef name, attn::PatternOp pattern, const FunctionShape &shape);
  /// Begins one of the table, under the name of an argument where it is ByArgument.
  FunctionBuilder(mlir::ModuleOp module, const PatternFunction &function, attn::PatternOp pattern,
                  llvm::StringRef symbol = {});

  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::func::FuncOp function;

  mlir::Value context(unsigned argument) { return function.getArgument(argument); }
  mlir::Value parameter(unsigned index) { return function.getArgument(FirstParameter + index); }
  /// What the arguments of the pattern are here; numbers as their words unless `asReals`.
  attn::ArgumentValues argumentValues(bool asReals);
  mlir::Value extra(unsigned index) { return function.getArgument(extraOffset + index); }
  mlir::Value constant(int64_t value);
  mlir::Value isEqual(mlir::Value a, int64_t value);
  void finish(mlir::ValueRange results = {});

  /// Value of a symbol that is a context argument; null for the symbols of a tile.
  mlir::Value contextSymbol(attn::Symbol symbol);

  /// Evaluates `makeValue(i)` where the selector is i, the last one otherwise; nested scf.if.
  mlir::Value choose(mlir::Value selector, unsigned count, mlir::Type type,
                     llvm::function_ref<mlir::Value(unsigned)> makeValue);
  /// The same without results.
  void dispatch(mlir::Value selector, unsigned count, llvm::function_ref<void(unsigned)> body);

private:
  /// Whether a selector, at least `first`, is below `part`.
  mlir::Value isBefore(mlir::Value selector, unsigned first, unsigned part);
  attn::PatternOp pattern;
  unsigned extraOffset = 0;
};

} // namespace heddle
