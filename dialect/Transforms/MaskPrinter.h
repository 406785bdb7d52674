// Owns the text of a set that is given by products of atoms: the same ops for the same products.
#pragma once

#include "dialect/Transforms/MaskUnits.h"

namespace heddle::attn {

class MaskPrinter {
public:
  MaskPrinter(const MaskAtoms &atoms, mlir::OpBuilder &builder, mlir::Location loc)
      : atoms(atoms), builder(builder), loc(loc), type(builder.getType<MaskType>()) {}

  /// In the coordinates of the place.
  mlir::Value print(const std::vector<Cube> &cubes, unsigned place = 0);
  mlir::Value inverse(mlir::Value mask);
  mlir::Value heads(llvm::ArrayRef<mlir::Value> masks);

private:
  template <class Op> mlir::Value sized(llvm::ArrayRef<SizeBound> sizes);
  mlir::Value joined(llvm::ArrayRef<mlir::Value> masks, bool isUnion);
  mlir::Value print(const MaskProduct &product);
  mlir::Value inside(const MaskUnit &unit);
  mlir::Value leaf(const MaskAtom &atom);
  void appendEdges(const EdgeUnit &edges, llvm::SmallVectorImpl<mlir::Value> &masks);
  void appendBand(BandUnit band, llvm::SmallVectorImpl<mlir::Value> &masks);

  const MaskAtoms &atoms;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Type type;
};

} // namespace heddle::attn
