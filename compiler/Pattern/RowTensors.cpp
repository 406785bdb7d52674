#include "compiler/Pattern/RowTensors.h"
#include "dialect/IR/PatternOperands.h"

namespace heddle {

std::vector<RowTensor> rowTensorsOf(attn::PatternOp pattern, int64_t keys) {
  std::vector<RowTensor> tensors;
  for (unsigned argument = 0; argument < pattern.getNumArguments(); ++argument) {
    if (!pattern.isOperand(argument) || !attn::hasQueries(pattern, argument))
      continue;
    const auto type = llvm::cast<mlir::MemRefType>(pattern.getArgumentTypes()[argument]);
    const int64_t entries = attn::hasKeys(pattern, argument) ? keys : 1;
    tensors.push_back(
        {argument, entries * int64_t(type.getElementTypeBitWidth() / 8), pattern.getParameterName(argument).str()});
  }
  return tensors;
}

} // namespace heddle
