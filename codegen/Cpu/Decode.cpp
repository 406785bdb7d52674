// A sequence at a time, or one kv head of it, as a forward call of a batch of one: its rows are a part of the tensors, its
// keys are found through its table of pages, or are a part of the tensors, too. So tiles, and with them bits, are
// those of a dense call on the same keys.
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
    if (!call.pagesOfKeys)
      return {};
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
      status = badPage({call.sequence, call.ownHeads ? call.firstHead / call.ownHeads : -1}, number, page, call.pages,
                       call.as<int32_t>(Role::kvIndptr) ? "kv_indices" : "page_table");
    isKnown[size_t(number)] = true;
  }

  const CpuCall &call;
  std::vector<bool> isKnown;
  Status status;
};

// Keys of a sequence, where offsets say how many there are.
int32_t keysOfOffsets(const CpuCall &call, int32_t sequence) {
  if (const int32_t *rows = call.as<int32_t>(Role::cuSeqlensK))
    return rows[sequence + 1] - rows[sequence];
  const int32_t *first = call.as<int32_t>(Role::kvIndptr), pages = first[sequence + 1] - first[sequence];
  return pages ? (pages - 1) * call.pageSize + call.as<int32_t>(Role::kvLastPageLen)[sequence] : 0;
}

// Where the keys of a sequence lie, and how many they are.
void giveKeys(const CpuCall &call, int32_t table, CpuCall &own) {
  const int32_t *offsets = call.as<int32_t>(Role::cuSeqlensK), *lengths = call.as<int32_t>(Role::sequsedK);
  const int64_t place = int64_t(table) * call.sequences + own.sequence;
  own.seqlenK = lengths ? lengths[place] : keysOfOffsets(call, own.sequence);
  for (const auto &[role, dim] : {std::pair(Role::k, call.headDim), {Role::v, call.valueDim}}) {
    const CpuStrides strides = stridesInPages(call, role, dim);
    own.stride[size_t(role)] = strides;
    move(own, role, offsets ? offsets[own.sequence] * strides[1] : 0);
  }
  if (const int32_t *first = call.as<int32_t>(Role::kvIndptr))
    own.pagesOfKeys = call.as<int32_t>(Role::kvIndices) + first[own.sequence];
  else
    own.pagesOfKeys = offsets ? nullptr : call.as<int32_t>(Role::pageTable) + place * call.maxPages;
  if (call.tables > 1) {
    own.ownHeads = call.heads / call.kvHeads;
    own.firstHead = table * own.ownHeads;
  }
}

// Where a part of a sequence stands: the first key of it and, behind the last position of the whole, its end.
void givePositions(const CpuCall &call, CpuCall &own) {
  const int32_t *origins = call.as<int32_t>(Role::kOrigins), *wholes = call.as<int32_t>(Role::wholeK);
  own.kOrigin = origins ? origins[own.sequence] : 0;
  const int32_t whole = wholes ? wholes[own.sequence] : own.kOrigin + own.seqlenK;
  own.qOrigin = whole - own.seqlenQ;
  for (int64_t argument : call.wholes)
    own.params[size_t(argument)] = whole;
}

// One sequence: a forward call on its lengths, positions and tensors.
CpuCall sequenceOf(const CpuCall &call, int32_t sequence, int32_t table) {
  const int32_t *offsets = call.as<int32_t>(Role::cuSeqlensQ);
  const int64_t firstRow = offsets ? offsets[sequence] : 0, batch = offsets ? 0 : sequence;
  CpuCall own = call;
  own.sequence = sequence;
  own.batch = 1;
  own.seqlenQ = offsets ? offsets[sequence + 1] - offsets[sequence] : call.seqlenQ;
  giveKeys(call, table, own);
  givePositions(call, own);
  own.blockM = std::clamp(own.seqlenQ, 1, call.blockM);
  own.lseRows = call.seqlenQ;
  for (Role role : {Role::q, Role::out}) {
    const CpuStrides strides = call.stridesOf(role);
    own.stride[size_t(role)] = strides;
    move(own, role, batch * strides[0] + firstRow * strides[1]);
  }
  move(own, Role::lse, batch * call.heads * call.seqlenQ + firstRow);
  return own;
}

} // namespace

Status forEachSequence(const CpuCall &call, const std::function<Status(const CpuCall &)> &visit) {
  for (int32_t sequence = 0; sequence < call.sequences; ++sequence)
    for (int32_t table = 0; table < call.tables; ++table)
      if (const CpuCall own = sequenceOf(call, sequence, table); own.seqlenQ > 0)
        HEDDLE_TRY(visit(own));
  return {};
}

Status decodeOnCpu(const CpuCall &call) {
  for (Role role : {Role::kOrigins, Role::wholeK})
    if (call.as<int32_t>(role) && call.wholes.empty())
      return badPart(role, call.pattern->info().name);
  HEDDLE_TRY(forEachSequence(call, [](const CpuCall &own) { return PageCheck(own).check(); }));
  return forEachSequence(call, [](const CpuCall &own) { return runAttention(own).status(); });
}

// Which keys sequences share is how they may be read, not what they are.
Status cascadeOnCpu(const CpuCall &call) { return decodeOnCpu(call); }
// Each sequence is a call of its own.
Status decodeInvariantOnCpu(const CpuCall &call) { return decodeOnCpu(call); }

} // namespace heddle
