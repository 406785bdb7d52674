// Owns what the ops share that read documents from tensors: what the tensors must hold, and how generated code finds
// the document of a row and the place of a pair in it.
#pragma once

#include "dialect/IR/Attn.h"

namespace heddle::attn {

/// Arguments of the pattern: offsets of queries and of keys, and how many keys of each document are in use.
struct DocumentTensors {
  mlir::Operation *op = nullptr; ///< that reads them
  mlir::Value offsetsQ;
  mlir::Value offsetsK; ///< null: `offsetsQ` is that of both axes
  mlir::Value used;     ///< null: all

  /// Null offsets where the op names no documents.
  static DocumentTensors of(MaskOpInterface op) {
    const DocumentOperands operands = op.documents();
    return {op, operands.offsetsQ, operands.offsetsK, operands.used};
  }
  static DocumentTensors of(ScaledOp op);

  explicit operator bool() const { return bool(offsetsQ); }
  mlir::Value keyOffsets() const { return offsetsK ? offsetsK : offsetsQ; }
  bool areThose(const DocumentTensors &other) const {
    return offsetsQ == other.offsetsQ && keyOffsets() == other.keyOffsets() && used == other.used &&
           countRows() == other.countRows();
  }
  /// Rows are counted from row 0, not from position 0, and the last query of a document stands at its last key.
  bool countRows() const;
  /// From query to key it is as far inside every document as in the call.
  bool keepDistances() const;

  static IntExpr lengthOf(mlir::Value tensor);
  /// No document is needed where there is nothing that could be in one.
  OperandUse useOf(mlir::Value tensor) const;

  llvm::LogicalResult verify() const;
  /// As OperandOpInterface says.
  std::string check(const TensorCall &call) const;
  std::vector<int64_t> make(mlir::Value tensor, const TensorCall &call, uint64_t seed) const;
};

/// Builds what is asked of documents where a pair of the call is known.
struct DocumentReader {
  const DocumentTensors &tensors;
  const PredicateFrame &frame; ///< outside all pullbacks

  mlir::Value tensor(mlir::Value argument) const { return frame.arguments->values.lookup(argument); }
  mlir::Value load(mlir::Value argument, mlir::Value index) const;
  /// How many documents there are.
  mlir::Value count() const;
  /// The query, as offsets of queries count.
  mlir::Value row() const { return tensors.countRows() ? frame.sub(frame.q, frame.qOrigin) : frame.q; }
  /// Of the query: the document that holds it; where none does, the nearest.
  mlir::Value documentOfQuery() const;
  /// The pair, counted inside a document.
  std::pair<mlir::Value, mlir::Value> placeIn(mlir::Value document) const;
};

} // namespace heddle::attn
