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
  auto append = [&](Generated which, const attn::IntExpr &result) {
    FunctionBuilder f(module, patternFunction(which), pattern);
    attn::ExprBuilder expressions(f.builder, f.loc, [&](attn::Symbol symbol) {
      return symbol.kind == attn::Symbol::Cell ? f.extra(0) : f.contextSymbol(symbol);
    });
    f.finish(expressions.integer(result));
  };
  append(Generated::DocumentCount, documents->count);
  append(Generated::DocumentRow, documents->begin);
}

} // namespace heddle
