//===- DocumentFunctions.cpp - where documents begin ----------------------===//
#include "codegen/Schedule/RangeFunction.h"
#include "codegen/Schedule/FunctionBuilder.h"
#include "dialect/Analysis/DocumentRows.h"

using namespace mlir;

namespace heddle {

void appendDocumentFunctions(ModuleOp module, attn::PatternOp pattern) {
  std::string whyNone;
  const std::optional<attn::DocumentRows> documents = attn::documentRowsOf(pattern, whyNone);
  if (!documents)
    return;
  Type i32 = IntegerType::get(module.getContext(), 32);
  auto append = [&](StringRef name, ArrayRef<Type> extra, const attn::IntExpr &result) {
    FunctionBuilder f(module, name, pattern, {/*hasContext=*/true, SmallVector<Type>(extra), {i32}});
    attn::ExprBuilder expressions(f.builder, f.loc, [&](attn::Symbol symbol) {
      return symbol.kind == attn::Symbol::Cell ? f.extra(0) : f.contextSymbol(symbol);
    });
    f.finish(expressions.integer(result));
  };
  append("pattern_document_count", {}, documents->count);
  append("pattern_document_row", {i32}, documents->begin);
}

} // namespace heddle
