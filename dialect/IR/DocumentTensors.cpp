//===- DocumentTensors.cpp - offsets of documents, checked and made -------===//
#include "dialect/IR/Attn.h"

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

std::string nameOf(DocumentsOp op, Value tensor) {
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

Axis queriesOf(DocumentsOp op, const TensorCall &call) {
  const Origin origin = op->getParentOfType<PatternOp>().getQOrigin();
  return {"queries", (origin == Origin::given ? call.qOrigin : 0) + call.seqlenQ, origin == Origin::given};
}

Axis keysOf(DocumentsOp op, const TensorCall &call) {
  const Origin origin = op->getParentOfType<PatternOp>().getQOrigin();
  return {"keys", call.kOrigin + call.seqlenK, origin == Origin::given};
}

std::string checkOffsets(const Entries &offsets, const Axis &axis) {
  if (offsets.size() < 2)
    return ": expected at least 2 entries, 0 and " + std::to_string(axis.end) + ", got " +
           std::to_string(offsets.size());
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
int64_t documentsOf(DocumentsOp op, const TensorCall &call) {
  for (Value offsets : {Value(op.getOffsetsQ()), Value(op.getOffsetsK())}) {
    if (isGiven(call, offsets))
      return std::max<int64_t>(1, int64_t(entriesOf(call, offsets).size()) - 1);
    if (offsets && cast<MemRefType>(offsets.getType()).hasStaticShape())
      return cast<MemRefType>(offsets.getType()).getDimSize(0) - 1;
  }
  return std::clamp<int64_t>(std::max(call.seqlenQ, call.seqlenK) / 512, 6, 64);
}

} // namespace

std::string DocumentsOp::checkTensors(const TensorCall &call) {
  Value ofKeys = getOffsetsK() ? getOffsetsK() : getOffsetsQ();
  const Entries &queries = entriesOf(call, getOffsetsQ()), &keys = entriesOf(call, ofKeys);
  if (std::string wrong = checkOffsets(queries, queriesOf(*this, call)); !wrong.empty())
    return nameOf(*this, getOffsetsQ()) + wrong;
  if (std::string wrong = checkOffsets(keys, keysOf(*this, call)); !wrong.empty())
    return nameOf(*this, ofKeys) + wrong;
  auto expectCount = [&](Value tensor, size_t expected) {
    const size_t got = entriesOf(call, tensor).size();
    return got == expected ? ""
                           : nameOf(*this, tensor) + ": expected " + std::to_string(expected) + " entries, as " +
                                 nameOf(*this, getOffsetsQ()) + " says, got " + std::to_string(got);
  };
  if (std::string wrong = expectCount(ofKeys, queries.size()); !wrong.empty())
    return wrong;
  if (!getUsed())
    return {};
  if (std::string wrong = expectCount(getUsed(), queries.size() - 1); !wrong.empty())
    return wrong;
  const Entries &used = entriesOf(call, getUsed());
  for (size_t s = 0; s < used.size(); ++s)
    if (used[s] < 0 || used[s] > keys[s + 1] - keys[s])
      return nameOf(*this, getUsed()) +
             entryText(used, s, "0 to " + std::to_string(keys[s + 1] - keys[s]) + ", the keys of the document");
  return {};
}

std::vector<int64_t> DocumentsOp::makeTensor(unsigned index, const TensorCall &call, uint64_t seed) {
  const int64_t documents = documentsOf(*this, call);
  Value tensor = getOperation()->getOperand(index);
  if (tensor == getOffsetsQ())
    return madeOffsets(documents, queriesOf(*this, call).end, seed);
  const Entries keys = isGiven(call, getOffsetsK()) ? entriesOf(call, getOffsetsK())
                                                    : madeOffsets(documents, keysOf(*this, call).end, seed);
  if (tensor != getUsed())
    return keys;
  Entries used;
  for (size_t s = 0; s + 1 < keys.size(); ++s) {
    const int64_t length = std::max<int64_t>(0, keys[s + 1] - keys[s]);
    used.push_back(length - int64_t(mixedWord(seed ^ s) % uint64_t(length / 4 + 1)));
  }
  return used;
}

} // namespace heddle::attn
