#include "dialect/IR/DocumentTensors.h"

#include <algorithm>

using namespace mlir;

namespace heddle::attn {
namespace {

using Entries = std::vector<int64_t>;

const Entries &entriesOf(const TensorCall &call, Value tensor) {
  return *call.tensors[cast<BlockArgument>(tensor).getArgNumber()];
}

bool isGiven(const TensorCall &call, Value tensor) {
  return tensor && holds(&call.tensors, cast<BlockArgument>(tensor).getArgNumber());
}

std::string nameOf(Operation *op, Value tensor) {
  return "tensor '" +
         op->getParentOfType<PatternOp>().getParameterName(cast<BlockArgument>(tensor).getArgNumber()).str() + "'";
}

std::string entryText(const Entries &entries, size_t index, const std::string &expected) {
  return ": expected entry " + std::to_string(index) + " of " + std::to_string(entries.size()) + " to be " + expected +
         ", got " + std::to_string(entries[index]);
}

/// One axis of a call.
struct Axis {
  const char *name;
  int64_t end; ///< one beyond its last position, or row
  bool isPart; ///< the call may see a part of the positions that the offsets count
};

Axis queriesOf(Operation *op, const TensorCall &call) {
  const Origin origin = op->getParentOfType<PatternOp>().getQOrigin();
  return {"queries", (origin == Origin::given ? call.qOrigin : 0) + call.seqlenQ, origin == Origin::given};
}

Axis keysOf(Operation *op, const TensorCall &call) {
  const Origin origin = op->getParentOfType<PatternOp>().getQOrigin();
  return {"keys", call.kOrigin + call.seqlenK, origin == Origin::given || call.keysMayBePart};
}

/// At least one entry.
std::string checkOffsets(const Entries &offsets, const Axis &axis) {
  if (offsets[0] != 0)
    return entryText(offsets, 0, "0");
  for (size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i] < offsets[i - 1])
      return entryText(offsets, i, "at least " + std::to_string(offsets[i - 1]) + ", the one before");
  const int64_t last = offsets.back();
  if (axis.isPart ? last < axis.end : last != axis.end)
    return entryText(offsets, offsets.size() - 1,
                     (axis.isPart ? "at least " : "") + std::to_string(axis.end) + ", where the " + axis.name + " end");
  return {};
}

/// Documents of random lengths, the second one empty, the third one of one position.
Entries madeOffsets(int64_t documents, int64_t end, uint64_t seed) {
  constexpr int64_t kEmpty = 1, kOfOne = 2, kParts = 1024;
  Entries weights(documents), offsets = {0};
  int64_t total = 0;
  for (int64_t s = 0; s < documents; ++s) {
    weights[s] = s == kEmpty || s == kOfOne ? 0 : 1 + int64_t(mixedWord(seed + uint64_t(s)) % kParts);
    total += weights[s];
  }
  const int64_t single = documents > kOfOne && end > 0;
  int64_t sum = 0;
  for (int64_t s = 0; s < documents; ++s) {
    sum += weights[s];
    offsets.push_back((end - single) * sum / total + (s >= kOfOne ? single : 0));
  }
  return offsets;
}

/// As many as given offsets say; else one for 512 positions, within reason.
int64_t documentsOf(const DocumentTensors &tensors, const TensorCall &call) {
  for (Value offsets : {tensors.offsetsQ, tensors.offsetsK}) {
    if (isGiven(call, offsets))
      return std::max<int64_t>(1, int64_t(entriesOf(call, offsets).size()) - 1);
    if (offsets && cast<MemRefType>(offsets.getType()).hasStaticShape())
      return cast<MemRefType>(offsets.getType()).getDimSize(0) - 1;
  }
  return std::clamp<int64_t>(std::max(call.seqlenQ, call.seqlenK) / 512, 6, 64);
}

} // namespace

DocumentTensors DocumentTensors::of(ScaledOp op) {
  const OperandRange offsets = op.getOffsets();
  if (offsets.empty())
    return {};
  return {op, offsets[0], offsets.size() > 1 ? Value(offsets[1]) : Value(), op.getUsed()};
}

bool DocumentTensors::countRows() const {
  return op->getParentOfType<PatternOp>().getQOrigin() == Origin::end && offsetsK;
}

bool DocumentTensors::keepDistances() const { return offsetsQ == keyOffsets() && !countRows(); }

static int64_t extentOf(Value tensor) { return cast<MemRefType>(tensor.getType()).getDimSize(0); }

IntExpr DocumentTensors::lengthOf(Value tensor) {
  const int64_t extent = extentOf(tensor);
  return ShapedType::isDynamic(extent) ? symbol(Symbol::Parameter, cast<BlockArgument>(tensor).getArgNumber())
                                       : IntExpr(extent);
}

OperandUse DocumentTensors::useOf(Value tensor) const {
  const IntExpr offsets = lengthOf(offsetsQ);
  if (tensor == used)
    return {{Extent::Length}, {offsets - 1, offsets - 1, "entry", "one for each document"}};
  if (tensor != offsetsQ)
    return {{Extent::Length}, {offsets, offsets, "entry", "as the offsets of the queries have"}};
  const IntExpr rows = max(symbol(Symbol::SeqlenQ), symbol(Symbol::SeqlenK));
  return {{Extent::Length}, {min(2, rows + 1), {}, "entry", "one more than there are documents"}};
}

LogicalResult DocumentTensors::verify() const {
  SmallVector<Value> tensors;
  for (Value tensor : {offsetsQ, offsetsK, used})
    if (tensor)
      tensors.push_back(tensor);
  for (Value tensor : tensors) {
    auto type = cast<MemRefType>(tensor.getType());
    if (!isOperandType(type) || type.getRank() != 1 || !type.getElementType().isInteger(32))
      return op->emitOpError("expected row-major memrefs of rank 1 of i32, got ") << type;
    const bool isOffsets = tensor != used;
    if (type.hasStaticShape() && type.getDimSize(0) < 1 + isOffsets)
      return op->emitOpError("expected at least ")
             << 1 + isOffsets << (isOffsets ? " offsets, got " : " entry, got ") << type;
  }
  if (used && !offsetsK)
    return op->emitOpError("expected offsets of the keys beside `used`");
  auto agree = [&](Value a, Value b, int64_t more) {
    return ShapedType::isDynamic(extentOf(a)) || ShapedType::isDynamic(extentOf(b)) ||
           extentOf(a) == extentOf(b) + more;
  };
  if (!agree(offsetsQ, keyOffsets(), 0) || (used && !agree(offsetsQ, used, 1)))
    return op->emitOpError("expected tensors of as many documents, got ") << ValueRange(tensors).getTypes();
  return success();
}

std::string DocumentTensors::check(const TensorCall &call) const {
  const Entries &queries = entriesOf(call, offsetsQ), &keys = entriesOf(call, keyOffsets());
  if (std::string wrong = checkOffsets(queries, queriesOf(op, call)); !wrong.empty())
    return nameOf(op, offsetsQ) + wrong;
  if (std::string wrong = checkOffsets(keys, keysOf(op, call)); !wrong.empty())
    return nameOf(op, keyOffsets()) + wrong;
  if (!used)
    return {};
  const Entries &inUse = entriesOf(call, used);
  for (size_t s = 0; s < inUse.size(); ++s)
    if (inUse[s] < 0 || inUse[s] > keys[s + 1] - keys[s])
      return nameOf(op, used) +
             entryText(inUse, s, "0 to " + std::to_string(keys[s + 1] - keys[s]) + ", the keys of the document");
  return {};
}

std::vector<int64_t> DocumentTensors::make(Value tensor, const TensorCall &call, uint64_t seed) const {
  const int64_t documents = documentsOf(*this, call);
  if (tensor == offsetsQ)
    return madeOffsets(documents, queriesOf(op, call).end, seed);
  const Entries keys =
      isGiven(call, offsetsK) ? entriesOf(call, offsetsK) : madeOffsets(documents, keysOf(op, call).end, seed);
  if (tensor != used)
    return keys;
  Entries inUse;
  for (size_t s = 0; s + 1 < keys.size(); ++s) {
    const int64_t length = std::max<int64_t>(0, keys[s + 1] - keys[s]);
    inUse.push_back(length - int64_t(mixedWord(seed ^ s) % uint64_t(length / 4 + 1)));
  }
  return inUse;
}

} // namespace heddle::attn
