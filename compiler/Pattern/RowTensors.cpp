#include "compiler/Pattern/RowTensors.h"
#include "dialect/IR/PatternOperands.h"

namespace heddle {

std::vector<RowTensor> rowTensorsOf(attn::PatternOp pattern, int64_t keys) {
  std::vector<RowTensor> tensors;
  for (unsigned argument = 0; argument < pattern.getNumArguments(); ++argument) {
    if (!pattern.isOperand(argument) || !attn::hasQueries(pattern, argument))
      continue;
    const auto type = llvm::cast<mlir::MemRefType>(pattern.getArgumentTypes()[argument]);
    RowTensor &tensor = tensors.emplace_back();
    tensor.argument = argument, tensor.name = pattern.getParameterName(argument).str();
    tensor.isOfBatches = attn::hasExtent(pattern, argument, attn::Extent::Batch);
    tensor.isOfHeads = attn::hasExtent(pattern, argument, attn::Extent::Heads);
    tensor.isOfKeys = attn::hasKeys(pattern, argument);
    tensor.rowBytes = (tensor.isOfKeys ? keys : 1) * int64_t(type.getElementTypeBitWidth() / 8);
  }
  return tensors;
}

} // namespace heddle
