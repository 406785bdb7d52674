// Verifier and interface methods of csr, and what its tensors must hold.
#include "dialect/Geometry/CellList.h"
#include "dialect/IR/Attn.h"
#include "dialect/IR/MaskPieces.h"
#include "dialect/IR/ListCalls.h"

#include <algorithm>

using namespace mlir;

namespace heddle::attn {
namespace {

enum Dimension : unsigned { Batches, HeadsOf, Offsets };

MemRefType offsetsType(CsrOp op) { return cast<MemRefType>(op.getOffsets().getType()); }
MemRefType indicesType(CsrOp op) { return cast<MemRefType>(op.getIndices().getType()); }
unsigned argumentOf(Value tensor) { return cast<BlockArgument>(tensor).getArgNumber(); }

IntExpr lengthExpr(Value tensor, int64_t extent) {
  return ShapedType::isDynamic(extent) ? symbol(Symbol::Parameter, argumentOf(tensor)) : IntExpr(extent);
}

/// The number of the list of a batch element and head.
IntExpr listExpr(CsrOp op) {
  IntExpr list = offsetsType(op).isDynamicDim(Batches) ? symbol(Symbol::Batch) : IntExpr(0);
  return offsetsType(op).isDynamicDim(HeadsOf) ? list * symbol(Symbol::Heads) + symbol(Symbol::Head) : list;
}

} // namespace

LogicalResult CsrOp::verify() {
  for (Value tensor : {Value(getOffsets()), Value(getIndices())}) {
    auto type = cast<MemRefType>(tensor.getType());
    const int64_t rank = tensor == getOffsets() ? 3 : 1;
    if (!isOperandType(type) || type.getRank() != rank || !type.getElementType().isInteger(32))
      return emitOpError("expected a row-major memref of rank ") << rank << " of i32, got " << type;
  }
  for (unsigned dimension : {Batches, HeadsOf})
    if (int64_t extent = offsetsType(*this).getDimSize(dimension); extent != 1 && !ShapedType::isDynamic(extent))
      return emitOpError("expected dimension ") << dimension << " of the offsets to be ? or 1, got " << extent;
  if (int64_t extent = offsetsType(*this).getDimSize(Offsets); !ShapedType::isDynamic(extent) && extent < 2)
    return emitOpError("expected at least 2 offsets in a list, got ") << offsetsType(*this);
  return success();
}

/// The sizes of the blocks around `mask`, the outermost first. Nothing inside pullbacks whose coordinates number no
/// blocks.
static std::optional<SmallVector<IntExpr>> blocksAround(Value mask) {
  for (Operation *user : mask.getUsers()) {
    if (user->hasTrait<OpTrait::IsTerminator>())
      return SmallVector<IntExpr>();
    if (user->getNumResults() != 1)
      return std::nullopt;
    std::optional<SmallVector<IntExpr>> sizes = blocksAround(user->getResult(0));
    auto pullback = dyn_cast<PullbackOpInterface>(user);
    if (!sizes || !pullback)
      return sizes;
    sizes->push_back(pullback.place().blockSize);
    return sizes->back() ? sizes : std::nullopt;
  }
  return std::nullopt;
}

static PatternOp patternOf(Value mask) { return mask.getParentRegion()->getParentOfType<PatternOp>(); }

/// One beyond the last row of `mask`; absent where coordinates are neither those of the call nor blocks of them.
static IntExpr rowsExpr(Value mask) {
  const std::optional<SmallVector<IntExpr>> sizes = blocksAround(mask);
  IntExpr rows = sizes ? endOf(patternOf(mask), WholeAxis::Queries) : IntExpr();
  for (const IntExpr &size : sizes.value_or(SmallVector<IntExpr>()))
    rows = ceilDiv(rows, max(1, size));
  return rows;
}

OperandUse CsrOp::getOperandUse(unsigned index) {
  if (index != 0)
    return {{Extent::Length}};
  return {{Extent::Batch, Extent::Heads, Extent::Length},
          {max(1, rowsExpr(getMask())) + 1, {}, "offset", "one more than there are rows of blocks or queries"}};
}

void CsrOp::pieces(const Frame &frame, PieceList &out) {
  Piece listed;
  listed.list = {frame.blocks(),
                 csrCells(),
                 {symbol(Symbol::Tensor, argumentOf(getOffsets())), symbol(Symbol::Tensor, argumentOf(getIndices())),
                  listExpr(*this), lengthExpr(getOffsets(), offsetsType(*this).getDimSize(Offsets)),
                  lengthExpr(getIndices(), indicesType(*this).getDimSize(0))}};
  out.push_back(intersect(frame.region, listed));
}

void CsrOp::complement(const Frame &frame, PieceList &out) {
  out.push_back(maskedPiece(frame, *this, "what lists leave out is asked pair by pair"));
}

uint32_t CsrOp::leafTerms(MaskTerms &terms) { return terms.unknown(/*rank=*/0); }

Value CsrOp::buildPredicate(PredicateFrame &frame) {
  auto lengthOf = [&](Value tensor, int64_t extent) {
    return ShapedType::isDynamic(extent) ? frame.arguments->lengths.lookup(tensor) : frame.constant(extent);
  };
  Value list = offsetsType(*this).isDynamicDim(Batches) ? frame.batch : frame.constant(0);
  if (offsetsType(*this).isDynamicDim(HeadsOf))
    list = frame.add(frame.mul(list, frame.heads), frame.head);
  Value rows = lengthOf(getOffsets(), offsetsType(*this).getDimSize(Offsets)),
        entries = lengthOf(getIndices(), indicesType(*this).getDimSize(0));
  auto tensor = [&](Value argument) { return frame.arguments->values.lookup(argument); };
  return callHas(frame.builder, frame.loc, *csrCells(),
                 {tensor(getOffsets()), tensor(getIndices()), list, rows, entries, frame.q, frame.k});
}

//===-- what the tensors hold --------------------------------------------------===//

namespace {

struct Extents {
  int64_t q, k;
};

Extents callExtents(Value mask, const TensorCall &call) {
  return {endOf(patternOf(mask), WholeAxis::Queries, call), endOf(patternOf(mask), WholeAxis::Keys, call)};
}

/// Where the coordinates of `mask` end, as rowsExpr says.
std::optional<Extents> extentsOf(Value mask, const TensorCall &call) {
  const std::optional<SmallVector<IntExpr>> sizes = blocksAround(mask);
  if (!sizes)
    return std::nullopt;
  Extents extents = callExtents(mask, call);
  for (const IntExpr &size : *sizes) {
    const auto fixed = size.constant();
    const int64_t number = std::max<int64_t>(1, fixed ? *fixed : call.parameters[size.get()->symbol.index]);
    extents = {(extents.q + number - 1) / number, (extents.k + number - 1) / number};
  }
  return extents;
}

std::string nameOf(CsrOp op, Value tensor) {
  return "tensor '" + op->getParentOfType<PatternOp>().getParameterName(argumentOf(tensor)).str() + "'";
}

std::string expected(const std::string &what, int64_t index, const std::string &value, int64_t got) {
  return ": expected " + what + " " + std::to_string(index) + " to be " + value + ", got " + std::to_string(got);
}

int64_t listsOf(CsrOp op, const TensorCall &call) {
  return (offsetsType(op).isDynamicDim(Batches) ? call.batch : 1) *
         (offsetsType(op).isDynamicDim(HeadsOf) ? call.heads : 1);
}

/// Offsets of lists behind one another, rows of up to four cells, some without any.
std::vector<int64_t> madeOffsets(int64_t lists, int64_t rows, int64_t cells, uint64_t seed) {
  std::vector<int64_t> offsets;
  int64_t entries = 0;
  for (int64_t list = 0; list < lists; ++list)
    for (int64_t row = 0; row < rows; ++row) {
      offsets.push_back(entries);
      const uint64_t word = mixedWord(seed + uint64_t(list * rows + row));
      if (row + 1 < rows && (word & 7) != 0)
        entries += std::min<int64_t>(cells, 1 + int64_t(word >> 8 & 3));
    }
  return offsets;
}

/// One index from each of as many equal parts of the cells as a row has places.
std::vector<int64_t> madeIndices(const std::vector<int64_t> &offsets, int64_t rows, int64_t cells, uint64_t seed) {
  std::vector<int64_t> indices;
  for (size_t place = 0; place + 1 < offsets.size(); ++place) {
    const int64_t length = (int64_t(place) + 1) % rows ? offsets[place + 1] - offsets[place] : 0;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t first = i * cells / length, next = (i + 1) * cells / length;
      indices.push_back(first + int64_t(mixedWord(seed ^ (place << 20 | uint64_t(i))) %
                                        uint64_t(std::max<int64_t>(next - first, 1))));
    }
  }
  return indices;
}

} // namespace

std::string CsrOp::checkTensors(const TensorCall &call) {
  const std::vector<int64_t> &offsets = *call.tensors[argumentOf(getOffsets())],
                             &indices = *call.tensors[argumentOf(getIndices())];
  const int64_t lists = std::max<int64_t>(listsOf(*this, call), 1), rows = int64_t(offsets.size()) / lists;
  const std::optional<Extents> extents = extentsOf(getMask(), call);
  for (int64_t place = 0; place < int64_t(offsets.size()); ++place) {
    const int64_t least = place % rows == 0 ? 0 : offsets[size_t(place - 1)];
    if (offsets[size_t(place)] < least || offsets[size_t(place)] > int64_t(indices.size()))
      return nameOf(*this, getOffsets()) + expected("entry", place,
                                                    std::to_string(least) + " to " + std::to_string(indices.size()),
                                                    offsets[size_t(place)]);
    if (place % rows == 0)
      continue;
    for (int64_t i = least; i < offsets[size_t(place)]; ++i) {
      const int64_t lowest = i == least ? 0 : indices[size_t(i - 1)] + 1, index = indices[size_t(i)];
      if (index < lowest || (extents && index >= extents->k))
        return nameOf(*this, getIndices()) + expected("entry", i,
                                                      "at least " + std::to_string(lowest) +
                                                          (extents ? " and below " + std::to_string(extents->k) : ""),
                                                      index);
    }
  }
  return {};
}

std::vector<int64_t> CsrOp::makeTensor(unsigned index, const TensorCall &call, uint64_t seed) {
  const Extents extents = extentsOf(getMask(), call).value_or(callExtents(getMask(), call));
  const int64_t cells = std::max<int64_t>(extents.k, 0), lists = std::max<int64_t>(listsOf(*this, call), 1);
  const int64_t inType = offsetsType(*this).getDimSize(Offsets);
  const int64_t rows = ShapedType::isDynamic(inType) ? std::max<int64_t>(extents.q, 1) + 1 : inType;
  const bool isGiven = holds(&call.tensors, argumentOf(getOffsets()));
  const std::vector<int64_t> offsets =
      isGiven ? *call.tensors[argumentOf(getOffsets())] : madeOffsets(lists, rows, cells, seed);
  return index == 0 ? offsets : madeIndices(offsets, isGiven ? int64_t(offsets.size()) / lists : rows, cells, seed);
}

} // namespace heddle::attn
