#include "runtime/Distributed/GroupShare.h"

#include "runtime/Core/FillingLaunch.h"

#include <algorithm>

namespace heddle {
//===-- layout ----------------------------------------------------------------===//

void GroupShare::layBlocks() {
  const int64_t batch = args.q.size[0], valueDim = args.v.size[3];
  for (size_t i = 0; i < blocks.size(); ++i) {
    OwnBlock &block = own.emplace_back();
    block.rows = blocks[i];
    block.first = placeOfRow(share.rows, block.rows.begin);
    block.operands = operandsFrom(block.first);
    for (const GroupStep &step : walk.steps)
      for (const ShardLaunch &launch : step.ranks[size_t(rank)].launches)
        block.launches += size_t(launch.rows) == i;
    const int64_t arrayCount = batch * share.heads * block.rows.size();
    for (size_t carry = 0; !isBackward() && carry < 2 && carry + 1 < block.launches; ++carry)
      block.carries[carry] = {memory.takeFloats(arrayCount * valueDim), memory.takeFloats(arrayCount)};
    if (args.lse ? blocks.size() > 1 : !isBackward()) // kernels write it, whoever wants it
      block.lse = memory.takeFloats(arrayCount);
    if (blocks.size() > 1 && args.d_lse)
      block.dLse = memory.takeFloats(arrayCount);
  }
}

void GroupShare::layWalks() {
  const int64_t batch = args.q.size[0];
  std::vector<WalkField> sums;
  if (isBackward() && !isTransposed())
    sums = {sumOf(args.d_k), sumOf(args.d_v)};
  ofQueries.emplace(share.rows, walk, rank, batch, share.kvHeads, HeadRange{0, share.kvHeads},
                    std::vector<WalkField>{fieldOf(Role::k), fieldOf(Role::v)}, sums);
  ofQueries->setWorkspace(memory.take(int64_t(ofQueries->workspaceBytes())));
  if (!isTransposed())
    return;
  std::vector<WalkField> fields = {fieldOf(Role::q), fieldOf(Role::dOut), fieldOf(Role::out), arrayOf(args.lse)};
  if (args.d_lse)
    fields.push_back(arrayOf(args.d_lse));
  transposed.emplace(share.rows, plan.transposed, rank, batch, share.heads, HeadRange{0, share.heads}, fields,
                     std::vector<WalkField>());
  transposed->setWorkspace(memory.take(int64_t(transposed->workspaceBytes())));
  ofKeys.emplace(share.rows, plan.keys, rank, batch, share.kvHeads, HeadRange{0, share.kvHeads},
                 std::vector<WalkField>{fieldOf(Role::k), fieldOf(Role::v)}, std::vector<WalkField>());
  ofKeys->setWorkspace(memory.take(int64_t(ofKeys->workspaceBytes())));
  for (const RowTensor &tensor : plan.rowTensors)
    rowEntries.emplace_back(plan, tensor, rank, share.rows, batch, entriesOf(tensor), memory);
  auto mostColumns = [&](const GroupWalk &of) {
    int64_t most = 0;
    for (const GroupStep &step : of.steps)
      for (const ShardLaunch &launch : step.ranks[size_t(rank)].launches)
        most = std::max(most, launch.columns.size());
    return most;
  };
  const int64_t keys = std::max(mostColumns(walk), mostColumns(plan.keys)), rows = mostColumns(plan.transposed);
  scratchK = memory.takeFloats(batch * keys * share.kvHeads * args.k.size[3]);
  scratchV = memory.takeFloats(batch * keys * share.kvHeads * args.v.size[3]);
  scratchQ = memory.takeFloats(batch * rows * share.heads * args.q.size[3]);
  scratchLse = memory.takeFloats(batch * rows * share.heads);
  scratchDLse = memory.takeFloats(batch * rows * share.heads);
}

bool GroupShare::isFilling(size_t step, const ShardLaunch &launch) const {
  return !isBackward() && fillsOthers(walk, size_t(rank), step, launch);
}

bool GroupShare::hasFilling() const {
  for (size_t step = 0; step < walk.steps.size(); ++step)
    for (const ShardLaunch &launch : walk.steps[step].ranks[size_t(rank)].launches)
      if (isFilling(step, launch))
        return true;
  return false;
}

/// Room for the largest workspace of a launch.
Status GroupShare::layLaunches(ShardDevice &device) {
  auto make = [&](const Launch &launch) -> Status {
    HEDDLE_ASSIGN(const uint64_t bytes, device.workspaceBytes(launch.kind, launch.args));
    kernelBytes = std::max(kernelBytes, bytes);
    return {};
  };
  std::vector<size_t> numbers(own.size(), 0);
  for (size_t step = 0; step < walk.steps.size(); ++step)
    for (const ShardLaunch &launch : walk.steps[step].ranks[size_t(rank)].launches)
      HEDDLE_TRY(make(isBackward() ? backwardLaunch(step, launch)
                                   : forwardLaunch(step, launch, numbers[size_t(launch.rows)]++)));
  HEDDLE_TRY(forEachMeeting([&](const Guest &guest, const GuestRows::Meeting &meeting, size_t number) {
    return make(guestLaunch(guest, meeting, number));
  }));
  for (size_t step = 0; isTransposed() && step < plan.transposed.steps.size(); ++step)
    for (const ShardLaunch &launch : plan.transposed.steps[step].ranks[size_t(rank)].launches)
      HEDDLE_TRY(make(transposedLaunch(step, launch)));
  kernelWorkspace = memory.take(int64_t(kernelBytes));
  if (!walk.guests.empty() || hasFilling())
    asideWorkspace = memory.take(int64_t(kernelBytes));
  return {};
}

Status GroupShare::lay(ShardDevice &device) {
  layBlocks();
  layGuests();
  layWalks();
  return layLaunches(device);
}

//===-- arguments of launches -------------------------------------------------===//

/// Tensors of rows begin with that of the first query of a launch.
std::vector<heddle_operand> GroupShare::operandsFrom(int64_t row) const {
  std::vector<heddle_operand> from = operands;
  for (heddle_operand &operand : from)
    for (const RowTensor &tensor : plan.rowTensors)
      if (operand.id == tensor.argument && operand.kind == HEDDLE_OPERAND_POINTER && operand.value.ptr)
        operand.value.ptr = static_cast<const char *>(operand.value.ptr) + row * tensor.rowBytes;
  return from;
}

const void *GroupShare::entriesOf(const RowTensor &tensor) const {
  for (const heddle_operand &operand : operands)
    if (operand.id == tensor.argument && operand.kind == HEDDLE_OPERAND_POINTER)
      return operand.value.ptr;
  return nullptr;
}

/// Tensors of rows are those of a launch of the transposed walk.
std::vector<heddle_operand> GroupShare::operandsAtKeys(size_t step, const ShardLaunch &launch) const {
  std::vector<heddle_operand> of = operands;
  for (const RowEntries &entries : rowEntries) {
    const RowTensor &tensor = plan.rowTensors[size_t(&entries - rowEntries.data())];
    const RowEntries::View view = entries.of(step, launch);
    for (heddle_operand &operand : of)
      if (operand.id == tensor.argument && operand.kind == HEDDLE_OPERAND_POINTER)
        operand.value.ptr = view.first;
      else if (operand.id == tensor.argument)
        operand.value.i64 = view.rows;
      else if (tensor.isOfKeys && operand.id == plan.wholes[2])
        operand.value.i64 = view.columns;
  }
  return of;
}

/// The caller's, with the queries of a block.
heddle_attention_args GroupShare::argsOfBlock(const OwnBlock &block) const {
  heddle_attention_args of = args;
  const int64_t count = block.rows.size();
  of.q = rowsOf(args.q, bytesOf(Role::q), block.first, count);
  of.out = rowsOf(args.out, bytesOf(Role::out), block.first, count);
  of.q_origin = block.rows.begin;
  of.operands = block.operands.data();
  of.lse = block.lse ? block.lse : args.lse;
  of.workspace = kernelBytes ? kernelWorkspace : nullptr;
  of.workspace_bytes = kernelBytes;
  return of;
}

GroupShare::Launch GroupShare::forwardLaunch(size_t step, const ShardLaunch &launch, size_t number) const {
  const OwnBlock &block = own[size_t(launch.rows)];
  const bool isLast = number + 1 == block.launches;
  Launch made{kindOfLaunch(!isLast || args.out.dtype == HEDDLE_FP32), argsOfBlock(block)};
  made.args.k = tensorAt(ofQueries->columns(step, launch, 0), args.k, request.elements.k, launch.columns.size());
  made.args.v = tensorAt(ofQueries->columns(step, launch, 1), args.v, request.elements.v, launch.columns.size());
  made.args.k_origin = launch.columns.begin;
  if (number > 0) {
    made.args.carry_out = block.carries[(number - 1) % 2].out;
    made.args.carry_lse = block.carries[(number - 1) % 2].lse;
  }
  if (isLast && block.arrived.out)
    made.args.carry_out = block.arrived.out, made.args.carry_lse = block.arrived.lse;
  if ((launch.isAside || isFilling(step, launch)) && kernelBytes)
    made.args.workspace = asideWorkspace;
  if (!isLast) {
    const Carry &carry = block.carries[number % 2];
    const int64_t dim = args.v.size[3];
    made.args.out = tensorAt(RowPlace::ofRows(carry.out, block.rows.size(), share.heads, dim * int64_t(sizeof(float))),
                             args.out, DType::fp32, block.rows.size());
    made.args.lse = carry.lse;
  }
  return made;
}

/// Gradients of own queries and of columns.
GroupShare::Launch GroupShare::backwardLaunch(size_t step, const ShardLaunch &launch) const {
  const OwnBlock &block = own[size_t(launch.rows)];
  Launch made{kindOfGradients(), argsOfBlock(block)};
  const int64_t queries = block.rows.size(), keys = launch.columns.size();
  made.args.k = tensorAt(ofQueries->columns(step, launch, 0), args.k, request.elements.k, keys);
  made.args.v = tensorAt(ofQueries->columns(step, launch, 1), args.v, request.elements.v, keys);
  made.args.k_origin = launch.columns.begin;
  made.args.d_out = rowsOf(args.d_out, bytesOf(Role::dOut), block.first, queries);
  made.args.d_lse = block.dLse ? block.dLse : args.d_lse;
  made.args.d_q = rowsOf(args.d_q, dtypeBytes(typeOfQueryGradient(request)), block.first, queries);
  auto sums = [&](const heddle_tensor &like, size_t field, float *scratch) {
    const int64_t heads = share.kvHeads, bytes = like.size[3] * int64_t(sizeof(float));
    const RowPlace place =
        isTransposed() ? RowPlace::ofRows(scratch, keys, heads, bytes) : ofQueries->sums(step, launch, field);
    return tensorAt(place, like, DType::fp32, keys);
  };
  made.args.d_k = sums(args.d_k, 0, scratchK);
  made.args.d_v = sums(args.d_v, 1, scratchV);
  return made;
}

RowPlace GroupShare::ownRowsOf(const ShardLaunch &launch, const heddle_tensor &like, float *scratch) const {
  const RowRange &all = allKeysOf(launch)->columns;
  return RowPlace::ofRows(scratch, all.size(), share.kvHeads, like.size[3] * int64_t(sizeof(float)))
      .at(ownKeysOf(launch).begin - all.begin, 0);
}

/// Gradients of own keys, of queries that came. Where these need keys of others, too, what becomes of those is dropped.
GroupShare::Launch GroupShare::transposedLaunch(size_t step, const ShardLaunch &launch) const {
  const ShardLaunch *all = allKeysOf(launch);
  const RowRange keysOf = plan.keysMetBy(rank, launch.rows);
  const int64_t first = all ? 0 : placeOfRow(share.rows, keysOf.begin);
  Launch made{kindOfGradients(), args, operandsAtKeys(step, launch)};
  made.args.operands = made.operands.data();
  const int64_t keys = keysOf.size(), queries = launch.columns.size();
  auto queriesOf = [&](const heddle_tensor &like, size_t field, DType dtype) {
    return tensorAt(transposed->columns(step, launch, field), like, dtype, queries);
  };
  made.args.q = queriesOf(args.q, 0, request.elements.q);
  made.args.d_out = queriesOf(args.d_out, 1, request.elements.out);
  made.args.out = queriesOf(args.out, 2, request.elements.out);
  made.args.lse = scratchLse;
  made.args.d_lse = args.d_lse ? scratchDLse : nullptr;
  made.args.q_origin = launch.columns.begin;
  auto keysFrom = [&](const heddle_tensor &like, Role role, size_t field) {
    return all ? tensorAt(ofKeys->columns(0, *all, field), like, request.elements.of(specOf(role).element), keys)
               : rowsOf(like, bytesOf(role), first, keys);
  };
  auto sums = [&](const heddle_tensor &like, float *scratch) {
    const int64_t bytes = like.size[3] * int64_t(sizeof(float));
    return all ? tensorAt(RowPlace::ofRows(scratch, keys, share.kvHeads, bytes), like, DType::fp32, keys)
               : rowsOf(like, sizeof(float), first, keys);
  };
  made.args.k = keysFrom(args.k, Role::k, 0);
  made.args.v = keysFrom(args.v, Role::v, 1);
  made.args.k_origin = keysOf.begin;
  const DType typeOfQ = typeOfQueryGradient(request);
  made.args.d_q = tensorAt(RowPlace::ofRows(scratchQ, queries, share.heads, args.q.size[3] * dtypeBytes(typeOfQ)),
                           args.d_q, typeOfQ, queries);
  made.args.d_k = sums(args.d_k, scratchK);
  made.args.d_v = sums(args.d_v, scratchV);
  made.args.workspace = kernelBytes ? kernelWorkspace : nullptr;
  made.args.workspace_bytes = kernelBytes;
  return made;
}

} // namespace heddle
