//===- Decode.cpp - queries of sequences whose keys lie in pages ------------===//
// A sequence at a time, as a forward call of a batch of one: its rows are a part of the tensors, its keys are found
// through its row of the table of pages. So tiles, and with them bits, are those of a dense call on the same keys.
#include "codegen/Cpu/Decode.h"
#include "codegen/Cpu/CpuAttention.h"
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Cpu/TileWalk.h"
#include "codegen/Emit/PatternInfo.h"
#include "runtime/Core/SequenceChecks.h"

#include <algorithm>

namespace heddle {
namespace {

CpuStrides stridesInPages(const CpuCall &call, Role role, int64_t dim) {
  const int64_t perRow = dim * call.kvHeads;
  return call.stride[size_t(role)].value_or(CpuStrides{perRow * call.pageSize, perRow, dim});
}

void move(CpuCall &call, Role role, int64_t elements) {
  call.role[size_t(role)] =
      call.as<char>(role) ? call.as<char>(role) + elements * dtypeBytes(call.elementOf(role)) : nullptr;
}

// Entries of the table that the pattern's ranges name, each looked at once.
class PageCheck {
public:
  explicit PageCheck(const CpuCall &call) : call(call), isKnown(size_t(call.maxPages), false) {}

  Status check() {
    const TileItems items = queryTiles(call);
    for (int64_t item = 0; item < items.count(); ++item)
      if (const TilePlace place = items.placeOf(item); place.rows > 0)
        checkTile(place);
    return status;
  }

private:
  void checkTile(const TilePlace &place) {
    const JitPattern &pattern = *call.pattern;
    const JitContext context = contextOf(call, place.batch, place.head);
    const int32_t variant = pattern.variant(context);
    const int32_t first = call.qOrigin + place.rowIndex(0), last = call.qOrigin + place.rowIndex(place.rows - 1);
    for (int32_t branch = 0; branch < pattern.info().branchCount; ++branch) {
      const Columns keys(branch, pattern.keyRate(variant, branch), pattern.keyResidue(context, variant, branch, first),
                         call.seqlenK);
      forEachTile(
          keys, call.blockN,
          [&](int32_t from) { return pattern.nextRange(context, {variant, branch, first, last, call.blockN}, from); },
          [&](int32_t column, bool) { checkKeys(keys, column); });
    }
  }

  void checkKeys(const Columns &keys, int32_t first) {
    for (int32_t n = 0; n < keys.countFrom(first, call.blockN); ++n)
      checkPage(keys.index(first + n) / call.pageSize);
  }

  void checkPage(int64_t number) {
    const int32_t page = call.pagesOfKeys[number];
    if (!isKnown[size_t(number)] && (page < 0 || page >= call.pages) && status.isOk())
      status = badPage(call.sequence, number, page, call.pages);
    isKnown[size_t(number)] = true;
  }

  const CpuCall &call;
  std::vector<bool> isKnown;
  Status status;
};

} // namespace

CpuCall sequenceOf(const CpuCall &call, int32_t sequence) {
  const int32_t *offsets = call.as<int32_t>(Role::cuSeqlensQ);
  const int64_t firstRow = offsets ? offsets[sequence] : 0, batch = offsets ? 0 : sequence;
  CpuCall own = call;
  own.sequence = sequence;
  own.batch = 1;
  own.seqlenQ = offsets ? offsets[sequence + 1] - offsets[sequence] : call.seqlenQ;
  own.seqlenK = call.as<int32_t>(Role::sequsedK)[sequence];
  own.qOrigin = own.seqlenK - own.seqlenQ;
  own.blockM = std::clamp(own.seqlenQ, 1, call.blockM);
  own.lseRows = call.seqlenQ;
  own.pagesOfKeys = call.as<int32_t>(Role::pageTable) + int64_t(sequence) * call.maxPages;
  for (Role role : {Role::q, Role::out}) {
    const CpuStrides strides = call.stridesOf(role);
    own.stride[size_t(role)] = strides;
    move(own, role, batch * strides[0] + firstRow * strides[1]);
  }
  own.stride[size_t(Role::k)] = stridesInPages(call, Role::k, call.headDim);
  own.stride[size_t(Role::v)] = stridesInPages(call, Role::v, call.valueDim);
  move(own, Role::lse, batch * call.heads * call.seqlenQ + firstRow);
  return own;
}

Status decodeOnCpu(const CpuCall &call) {
  for (const bool onlyChecks : {true, false})
    for (int32_t sequence = 0; sequence < call.sequences; ++sequence) {
      const CpuCall own = sequenceOf(call, sequence);
      if (own.seqlenQ > 0)
        HEDDLE_TRY(onlyChecks ? PageCheck(own).check() : runAttention(own).status());
    }
  return {};
}

} // namespace heddle
