#include "runtime/Distributed/GroupCall.h"
#include "runtime/Distributed/GroupShare.h"

namespace heddle {

/// Between an array of all rows of the rank and one of the rows of a block.
Status GroupShare::copyArray(float *rowsAlone, const float *array, const OwnBlock &block, bool isToRows,
                             ShardDevice &device) const {
  const RowPlace alone = RowPlace::ofArray(rowsAlone, plan.heads, block.rows.size());
  const RowPlace all = RowPlace::ofArray(array, plan.heads, args.q.size[1]).at(block.first, 0);
  const RowPlace &to = isToRows ? alone : all, &from = isToRows ? all : alone;
  return device.copy({to, from, args.q.size[0], block.rows.size(), plan.heads}, Queue::compute);
}

Status GroupShare::runForward(Transport &transport, ShardDevice &device) {
  std::vector<size_t> numbers(own.size(), 0);
  WalkRun::Besides besides;
  if (!walk.guests.empty()) {
    const size_t last = walk.steps.size() - 1;
    HEDDLE_TRY(device.follow(Queue::aside, Queue::compute));
    HEDDLE_TRY(device.follow(Queue::compute, Queue::aside)); // launches that fill the GPU begin behind those aside
    besides.addMessages = [&, last](size_t step, Exchange &exchange) {
      return step + 1 == last ? sendGuests(exchange, device) : Status();
    };
    besides.begin = [&, last](size_t step) {
      return step + 1 == last ? meetGuests(device) : step == last ? bringGuestsHome(transport, device) : Status();
    };
  }
  std::vector<Queue> queues(own.size(), Queue::compute); // of the last launch of each block
  HEDDLE_TRY(ofQueries->run(
      transport, device,
      [&](size_t step, const ShardLaunch &launch) {
        const Queue queue = launch.isAside ? Queue::aside : Queue::compute;
        Queue &before = queues[size_t(launch.rows)];
        if (before != queue) // it continues what is computed there
          HEDDLE_TRY(device.follow(queue, before));
        before = queue;
        const Launch made = forwardLaunch(step, launch, numbers[size_t(launch.rows)]++);
        return device.launch(made.kind, made.args, queue);
      },
      besides));
  for (const OwnBlock &block : own)
    if (block.lse)
      HEDDLE_TRY(copyArray(block.lse, args.lse, block, /*isToRows=*/false, device));
  return {};
}

static Status clearTensor(const heddle_tensor &tensor, ShardDevice &device) {
  const RowPlace place = RowPlace::ofTensor(tensor, sizeof(float));
  const int64_t rows = tensor.size[1], heads = tensor.size[2];
  if (place.isRun(heads) && (tensor.size[0] == 1 || place.batchStride == rows * place.rowStride))
    return device.clear(place.base, uint64_t(tensor.size[0] * rows * place.rowStride), Queue::compute);
  return badArguments("d_q, d_k, d_v: expected tensors without gaps in a call over a group");
}

Status GroupShare::clearGradients(ShardDevice &device) const {
  for (const heddle_tensor *gradient : {&args.d_q, &args.d_k, &args.d_v})
    if (isBackward() && gradient->dtype == HEDDLE_FP32)
      HEDDLE_TRY(clearTensor(*gradient, device));
  return {};
}

Status GroupShare::runBackward(Transport &transport, ShardDevice &device) {
  HEDDLE_TRY(clearGradients(device));
  for (const OwnBlock &block : own) {
    if (block.lse)
      HEDDLE_TRY(copyArray(block.lse, args.lse, block, /*isToRows=*/true, device));
    if (block.dLse)
      HEDDLE_TRY(copyArray(block.dLse, args.d_lse, block, /*isToRows=*/true, device));
  }
  HEDDLE_TRY(ofQueries->run(transport, device,
                            [&](size_t step, const ShardLaunch &launch) {
                              const Launch made = backwardLaunch(step, launch);
                              return device.launch(made.kind, made.args, Queue::compute);
                            },
                            {}));
  return isTransposed() ? runTransposed(transport, device) : Status();
}

Status GroupShare::runTransposed(Transport &transport, ShardDevice &device) {
  return transposed->run(
      transport, device,
      [&](size_t step, const ShardLaunch &launch) -> Status {
        const int64_t queries = launch.columns.size();
        auto copyColumns = [&](float *to, size_t field) {
          const RowPlace from = transposed->columns(step, launch, field);
          return device.copy({RowPlace::ofArray(to, plan.heads, queries), from, args.q.size[0], queries, plan.heads},
                             Queue::compute);
        };
        HEDDLE_TRY(copyColumns(scratchLse, 3));
        if (args.d_lse)
          HEDDLE_TRY(copyColumns(scratchDLse, 4));
        const Launch made = transposedLaunch(step, launch);
        return device.launch(made.kind, made.args, Queue::compute);
      },
      {});
}

Status GroupShare::run(Transport &transport, ShardDevice &device) {
  return plan.exchangesHeads ? runHeads(transport, device)
         : isBackward()      ? runBackward(transport, device)
                             : runForward(transport, device);
}

namespace {

std::string num(int64_t value) { return std::to_string(value); }

/// Sizes do not depend on where a workspace lies.
char *anyWorkspace() { return reinterpret_cast<char *>(uintptr_t(1) << 20); }

Status checkRanks(const GroupRequest &request, const Transport &transport) {
  if (transport.ranks() == request.plan.ranks())
    return {};
  return badArguments("plan: it is of " + num(request.plan.ranks()) + " ranks, the group has " +
                      num(transport.ranks()));
}

Status checkElements(const GroupRequest &request) {
  const ElementTraits &element = traitsOf(request.elements.q);
  if (!element.isScaled())
    return {};
  return Status::unsupported("q: dtype: " + std::string(element.name) +
                             " has scales, which do not travel; ranks and streamed pieces take bf16, fp16 or fp32");
}

} // namespace

Result<uint64_t> groupWorkspace(const GroupRequest &request, int32_t rank, ShardDevice &device) {
  HEDDLE_TRY(checkElements(request));
  if (rank >= request.plan.ranks())
    return badArguments("plan: it is of " + num(request.plan.ranks()) + " ranks, this is rank " + num(rank));
  GroupShare share(request, rank, anyWorkspace());
  HEDDLE_TRY(share.lay(device));
  return share.workspaceBytes();
}

Status runGroupCall(const GroupRequest &request, Transport &transport, ShardDevice &device, Agreements &agreed) {
  std::optional<GroupShare> share;
  auto prepare = [&]() -> Status {
    HEDDLE_TRY(checkRanks(request, transport));
    HEDDLE_TRY(checkElements(request));
    share.emplace(request, transport.rank(), static_cast<char *>(request.args.workspace));
    HEDDLE_TRY(share->lay(device));
    if (share->workspaceBytes() <= request.args.workspace_bytes)
      return {};
    return badArguments("workspace: expected " + std::to_string(share->workspaceBytes()) + " bytes, got " +
                        std::to_string(request.args.workspace_bytes));
  };
  const Status own = prepare();
  HEDDLE_TRY(agree(own.isOk() ? Result<std::string>(agreementOf(request)) : own, transport, agreed,
                   /*mayMeet=*/!device.isCaptured()));
  const Status status = share->run(transport, device);
  if (!status.isOk()) // the others need not wait for what will not come
    transport.abort(status.message());
  return status;
}

} // namespace heddle
