#include "dialect/Transforms/MaskPrinter.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace heddle::attn {
namespace {

constexpr SizeBound kZero{};
/// Beyond every position.
constexpr SizeBound kEverything{0, 0, std::numeric_limits<int32_t>::max()};

bool isLiteral(const std::vector<SizeBound> &bounds, int64_t value) {
  return bounds.size() == 1 && bounds[0].isLiteral() && bounds[0].constant == value;
}

SizeBound orElse(const std::vector<SizeBound> &bounds, size_t index, const SizeBound &otherwise) {
  return bounds.empty() ? otherwise : bounds[std::min(index, bounds.size() - 1)];
}

} // namespace

template <class Op> Value MaskPrinter::sized(ArrayRef<SizeBound> sizes) {
  SmallVector<Value> dynamic;
  SmallVector<int64_t> values;
  Block &body = *builder.getInsertionBlock();
  for (const SizeBound &size : sizes) {
    values.push_back(size.isLiteral() ? size.constant : ShapedType::kDynamic);
    if (!size.isLiteral())
      dynamic.push_back(body.getArgument(size.argument));
  }
  return Op::create(builder, loc, type, dynamic, builder.getDenseI64ArrayAttr(values));
}

Value MaskPrinter::inverse(Value mask) { return NotOp::create(builder, loc, type, mask); }

Value MaskPrinter::heads(ArrayRef<Value> masks) { return HeadsOp::create(builder, loc, type, masks); }

Value MaskPrinter::joined(ArrayRef<Value> masks, bool isUnion) {
  if (masks.size() == 1)
    return masks[0];
  if (isUnion)
    return OrOp::create(builder, loc, type, masks);
  return AndOp::create(builder, loc, type, masks);
}

Value MaskPrinter::inside(const MaskUnit &unit) {
  IRMapping operands;
  Operation *op = atoms.place(unit.place).op;
  operands.map(op->getOperand(0), print(unit.cubes, unit.place));
  return builder.clone(*op, operands)->getResult(0);
}

Value MaskPrinter::leaf(const MaskAtom &atom) {
  if (atom.kind == MaskAtom::Prefix)
    return sized<PrefixOp>({atom.bound});
  return builder.clone(*atom.op)->getResult(0);
}

void MaskPrinter::appendEdges(const EdgeUnit &edges, SmallVectorImpl<Value> &masks) {
  if (edges.fromQ) {
    masks.push_back(sized<BoxOp>({*edges.fromQ, *edges.firstQ, *edges.fromK, *edges.firstK}));
    return;
  }
  if (edges.firstQ || edges.lastQ)
    masks.push_back(sized<RowsOp>({edges.firstQ.value_or(kZero), edges.lastQ.value_or(kZero)}));
  else
    masks.push_back(sized<ColsOp>({edges.firstK.value_or(kZero), edges.lastK.value_or(kZero)}));
}

/// Bounds on the far side of the query are said as what a window leaves out of a bounded band.
void MaskPrinter::appendBand(BandUnit band, SmallVectorImpl<Value> &masks) {
  if (!band.above.empty() && band.atLeast.empty() && band.atMost.empty()) {
    for (const SizeBound &size : band.above)
      masks.push_back(inverse(isLiteral({size}, 0) ? CausalOp::create(builder, loc, type).getResult()
                                                   : sized<WindowOp>({kEverything, size})));
    return;
  }
  if (!band.below.empty() && band.atMost.empty())
    band.atMost = {kZero};
  if (!band.above.empty() && band.atLeast.empty())
    band.atLeast = {kZero};
  const size_t windows = std::max(band.atLeast.size(), band.atMost.size());
  for (size_t i = 0; i < windows; ++i)
    masks.push_back(band.atLeast.empty() && isLiteral({band.atMost[i]}, 0)
                        ? CausalOp::create(builder, loc, type).getResult()
                        : sized<WindowOp>({orElse(band.atLeast, i, kEverything), orElse(band.atMost, i, kEverything)}));
  for (const SizeBound &size : band.below)
    masks.push_back(inverse(sized<WindowOp>({size, band.atMost[0]})));
  for (const SizeBound &size : band.above)
    masks.push_back(inverse(sized<WindowOp>({band.atLeast[0], size})));
  if (band.hole)
    masks.push_back(inverse(sized<WindowOp>({band.hole->first, band.hole->second})));
}

Value MaskPrinter::print(const MaskProduct &product) {
  SmallVector<Value> masks;
  for (const MaskUnit &unit : product) {
    const size_t first = masks.size();
    if (unit.kind == MaskUnit::Inside)
      masks.push_back(inside(unit));
    else if (unit.kind == MaskUnit::Edges)
      appendEdges(unit.edges, masks);
    else if (unit.kind == MaskUnit::Band)
      appendBand(unit.band, masks);
    else
      masks.push_back(leaf(atoms.all()[unit.atom]));
    if (unit.isNegated)
      masks[first] = inverse(masks[first]);
  }
  if (masks.empty())
    return FullOp::create(builder, loc, type);
  return joined(masks, /*isUnion=*/false);
}

Value MaskPrinter::print(const std::vector<Cube> &cubes, unsigned place) {
  if (cubes.empty())
    return sized<BoxOp>({kZero, kZero, kZero, kZero});
  std::vector<MaskProduct> products;
  for (const Cube &cube : cubes)
    products.push_back(productOf(atoms, cube, place));
  joinProducts(atoms, products);
  const MaskProduct common = takeCommon(products);
  SmallVector<Value> terms, factors;
  if (!common.empty())
    factors.push_back(print(common));
  for (const MaskProduct &product : products)
    terms.push_back(print(product));
  factors.push_back(joined(terms, /*isUnion=*/true));
  return joined(factors, /*isUnion=*/false);
}

} // namespace heddle::attn
