// Owns what an argument of type memref is: its elements, the meaning of its dimensions, and how it and its length
// reach the generated functions. A tensor has one number with the run-time sizes, its place among the arguments of the
// pattern; the word of that number holds its length, the one extent that no size of the call gives, or nothing.
#pragma once

#include "dialect/Geometry/IntExpr.h"
#include "dialect/Geometry/TensorData.h"
#include "runtime/Core/DType.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"

namespace heddle::attn {

/// What a `?` in the shape of an operand stands for. In patterns of parts, Rows: so many rows of queries, of which a call has
/// consecutive ones, from its address on; the length of the tensor. Columns: as columnsArgument() says.
enum class Extent : uint8_t { Batch, Heads, SeqlenQ, SeqlenK, Length, Rows, Columns };
const char *extentName(Extent extent);

/// What a length must be, over the sizes of a call and the lengths of other tensors; `unit` and `reason` say it in words
/// (ArgumentBound). An absent end is no bound.
struct LengthBound {
  IntExpr least = 1, most = {};
  std::string unit = "entry", reason = {};
};

/// What one operand is to one op.
struct OperandUse {
  llvm::SmallVector<Extent, 4> extents; ///< of each dimension, where the type says `?`
  LengthBound length = {};              ///< of the last dimension, where that is a Length
};

/// One call, as far as its tensors depend on it.
struct TensorCall {
  int64_t batch = 1, heads = 1, seqlenQ = 0, seqlenK = 0;
  int64_t qOrigin = 0, kOrigin = 0; ///< positions of row 0 and key 0
  std::vector<int64_t> parameters = {};
  TensorData tensors = {};
  bool keysMayBePart = false;          ///< of those that tensors speak of: others come in calls that continue this one
  std::optional<int64_t> element = {}; ///< of the batch, whose queries and keys these are; absent: they are of each
};

/// Splitmix64: numbers of tensors that are made for tests.
uint64_t mixedWord(uint64_t word);

/// Of the table of elements, by its name there; nothing for any other type.
std::optional<DType> elementOf(mlir::Type type);
mlir::Type typeOf(mlir::MLIRContext *context, DType element);

/// A memref of one of the elements, at least one dimension, row-major in the default memory space.
bool isOperandType(mlir::Type type);

/// In generated functions an operand is a memref of this type: one dimension, which has no end. 16-bit floats are i16,
/// an i64 is two i32, the lower word first.
mlir::MemRefType loweredOperandType(mlir::Type elementType);
inline constexpr int64_t kEndlessOperand = int64_t(1) << 40;

/// Arguments of the pattern -> values at the place where a function is built.
struct ArgumentValues {
  mlir::IRMapping values;  ///< words of i32 sizes, f32 numbers, memrefs of loweredOperandType
  mlir::IRMapping lengths; ///< of operands: their words
};

/// Element `index` (of type index) of an operand of the pattern that holds no i64, as i32 or, of floats, as f32. 16-bit
/// floats are widened by integer operations, exactly, so that every target can do it.
mlir::Value loadOperand(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value argument,
                        const ArgumentValues &arguments, mlir::Value index);

// Owns how generated code reads what masks need of an i32 tensor (a memref of loweredOperandType): one entry, and the
// search that says in which of the cells between ascending entries a position lies. The host's version is TensorData.h.

mlir::Value loadEntry(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor, mlir::Value index);

/// The number of the last of the first `count` entries that is not above `value`; 0 if there is none. A call of a
/// function that is added to the module once. Reads entries 1 to count - 1 only, whatever they hold.
mlir::Value callSearch(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor, mlir::Value value,
                       mlir::Value count);

} // namespace heddle::attn
