#include "runtime/Distributed/GroupCall.h"
#include "runtime/Distributed/GroupShare.h"
#include "runtime/Distributed/HeadExchange.h"

#include "runtime/Core/CallChecks.h"
#include "runtime/Core/PartsLaunch.h"

namespace heddle {

/// Between an array of all rows of the rank and one of the rows of a block.
RowCopy GroupShare::copyOfArray(float *rowsAlone, const float *array, const OwnBlock &block, bool isToRows) const {
  const RowPlace alone = RowPlace::ofArray(rowsAlone, share.heads, block.rows.size());
  const RowPlace all = RowPlace::ofArray(array, share.heads, args.q.size[1]).at(block.first, 0);
  const RowPlace &to = isToRows ? alone : all, &from = isToRows ? all : alone;
  return {to, from, args.q.size[0], block.rows.size(), share.heads};
}

Status GroupShare::runForward(const RankView &ranks, ShardDevice &device) {
  std::vector<size_t> numbers(own.size(), 0);
  WalkRun::Besides besides;
  const ShardLaunch *const beforeParts = launchBeforeParts(walk, size_t(rank));
  std::optional<size_t> asideOfStep; // the launch before was aside, in this step
  const bool isFilled = hasFilling(), hasGuests = !walk.guests.empty();
  if (hasGuests)
    besides = besidesOfGuests(ranks, device);
  if (isFilled) // such launches wait for the copies and the message, not for launches
    besides.begin = [&](size_t step) { return step == 1 ? device.follow(Queue::aside, Queue::link) : Status(); };
  if (isFilled || hasGuests)
    besides.copied = [&]() -> Status {
      HEDDLE_TRY(device.follow(Queue::aside, Queue::compute));
      // Launches that fill the GPU begin behind those aside of rows that travel.
      return hasGuests ? device.follow(Queue::compute, Queue::aside) : Status();
    };
  std::vector<Queue> queues(own.size(), Queue::compute); // of the last launch of each block
  HEDDLE_TRY(ofQueries->run(
      ranks, device,
      [&](size_t step, const ShardLaunch &launch) {
        const bool isFiller = isFilling(step, launch);
        const Queue queue = launch.isAside || isFiller ? Queue::aside : Queue::compute;
        Queue &before = queues[size_t(launch.rows)];
        if (before != queue && !isFiller) // it continues what is computed there
          HEDDLE_TRY(device.follow(queue, before));
        before = queue;
        if (asideOfStep == step && &launch == beforeParts) // few rows in front of it would leave those aside processors
          HEDDLE_TRY(device.letBegin(Queue::aside));
        asideOfStep = launch.isAside ? std::optional(step) : std::nullopt;
        const Launch made = forwardLaunch(step, launch, numbers[size_t(launch.rows)]++);
        HEDDLE_TRY(device.launch(made.kind, made.args, queue));
        return &launch == beforeParts ? sendParts(ranks, device) : Status();
      },
      besides));
  if (isFilled)
    HEDDLE_TRY(device.follow(Queue::compute, Queue::aside));
  std::vector<RowCopy> arrays;
  for (const OwnBlock &block : own)
    if (block.lse && args.lse)
      arrays.push_back(copyOfArray(block.lse, args.lse, block, /*isToRows=*/false));
  return device.copyAll(arrays, Queue::compute);
}

Status clearSums(const heddle_tensor &tensor, ShardDevice &device) {
  const RowPlace place = RowPlace::ofTensor(tensor, sizeof(float));
  const int64_t rows = tensor.size[1], heads = tensor.size[2];
  if (place.isRun(heads) && (tensor.size[0] == 1 || place.batchStride == rows * place.rowStride))
    return device.clear(place.base, uint64_t(tensor.size[0] * rows * place.rowStride), Queue::compute);
  return badArguments("d_q, d_k, d_v: expected tensors without gaps in a call over a group");
}

Status GroupShare::clearGradients(ShardDevice &device) const {
  for (const heddle_tensor *gradient : {&args.d_q, &args.d_k, &args.d_v})
    if (gradient->dtype == HEDDLE_FP32)
      HEDDLE_TRY(clearSums(*gradient, device));
  return {};
}

Status GroupShare::runBackward(const RankView &ranks, ShardDevice &device) {
  HEDDLE_TRY(clearGradients(device));
  std::vector<RowCopy> arrays;
  for (const OwnBlock &block : own) {
    if (block.lse)
      arrays.push_back(copyOfArray(block.lse, args.lse, block, /*isToRows=*/true));
    if (block.dLse)
      arrays.push_back(copyOfArray(block.dLse, args.d_lse, block, /*isToRows=*/true));
  }
  HEDDLE_TRY(device.copyAll(arrays, Queue::compute));
  HEDDLE_TRY(ofQueries->run(ranks, device,
                            [&](size_t step, const ShardLaunch &launch) {
                              const Launch made = backwardLaunch(step, launch);
                              return device.launch(made.kind, made.args, Queue::compute);
                            },
                            {}));
  return isTransposed() ? runTransposed(ranks, device) : Status();
}

Status GroupShare::clearOwnRows(const ShardLaunch &launch, ShardDevice &device) const {
  for (const auto &[like, scratch] : {std::pair(&args.d_k, scratchK), std::pair(&args.d_v, scratchV)}) {
    const RowPlace own = ownRowsOf(launch, *like, scratch);
    for (int64_t batch = 0; batch < args.q.size[0]; ++batch)
      HEDDLE_TRY(device.clear(own.base + batch * own.batchStride, uint64_t(ownKeysOf(launch).size() * own.rowStride),
                              Queue::compute));
  }
  return {};
}

Status GroupShare::addOwnRows(const ShardLaunch &launch, ShardDevice &device) const {
  const RowRange &keys = ownKeysOf(launch);
  for (const auto &[like, scratch] : {std::pair(&args.d_k, scratchK), std::pair(&args.d_v, scratchV)}) {
    const RowPlace to = RowPlace::ofTensor(*like, sizeof(float)).at(placeOfRow(share.rows, keys.begin), 0);
    const RowCopy rows{to, ownRowsOf(launch, *like, scratch), args.q.size[0], keys.size(), share.kvHeads};
    HEDDLE_TRY(device.add({rows}, Queue::compute));
  }
  return {};
}

WalkRun::Besides GroupShare::besidesOfEntries(ShardDevice &device) const {
  WalkRun::Besides besides;
  if (rowEntries.empty())
    return besides;
  besides.addMessages = [this, &device](size_t step, Exchange &exchange) {
    for (const RowEntries &entries : rowEntries)
      HEDDLE_TRY(entries.send(step, device, exchange));
    return Status();
  };
  besides.begin = [this, &device](size_t step) {
    for (const RowEntries &entries : rowEntries)
      HEDDLE_TRY(entries.place(step, device));
    return Status();
  };
  return besides;
}

/// Keys of others travel in front of the queries; launches that need none begin before they are there.
Status GroupShare::runTransposed(const RankView &ranks, ShardDevice &device) {
  bool areKeysHere = plan.keys.steps.empty();
  if (!areKeysHere) {
    HEDDLE_TRY(ofKeys->arrive(ranks, device));
    HEDDLE_TRY(ofKeys->place(device));
  }
  return transposed->run(
      ranks, device,
      [&](size_t step, const ShardLaunch &launch) -> Status {
        const int64_t queries = launch.columns.size();
        auto copyColumns = [&](float *to, size_t field) {
          const RowPlace from = transposed->columns(step, launch, field);
          return device.copy({RowPlace::ofArray(to, share.heads, queries), from, args.q.size[0], queries, share.heads},
                             Queue::compute);
        };
        HEDDLE_TRY(copyColumns(scratchLse, 3));
        if (args.d_lse)
          HEDDLE_TRY(copyColumns(scratchDLse, 4));
        const Launch made = transposedLaunch(step, launch);
        if (!allKeysOf(launch))
          return device.launch(made.kind, made.args, Queue::compute);
        if (!areKeysHere)
          HEDDLE_TRY(device.follow(Queue::compute, Queue::link));
        areKeysHere = true;
        HEDDLE_TRY(clearOwnRows(launch, device));
        HEDDLE_TRY(device.launch(made.kind, made.args, Queue::compute));
        return addOwnRows(launch, device);
      },
      besidesOfEntries(device));
}

Status GroupShare::run(const RankView &ranks, ShardDevice &device) {
  return isBackward() ? runBackward(ranks, device) : runForward(ranks, device);
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
  HEDDLE_TRY(heddle::checkScaleRows(request.kind, request.elements));
  HEDDLE_TRY(heddle::checkKeyMajor(request.kind, request.elements));
  const ElementTraits &element = traitsOf(request.elements.q);
  if (!element.isScaled())
    return {};
  return Status::unsupported("q: dtype: " + std::string(element.name) +
                             " has scales, which do not travel; ranks and streamed pieces take bf16, fp16 or fp32");
}

Status checkShare(const GroupRequest &request, int32_t rank) {
  const GroupPlan &plan = request.plan;
  const heddle_attention_args &args = request.args;
  const int64_t rows = plan.rowsOf(rank);
  auto expect = [&](const char *what, int64_t expected, int64_t got) {
    return expected == got ? Status()
                           : badArguments(std::string(what) + ": expected " + num(expected) + " by the plan of rank " +
                                          num(rank) + ", got " + num(got));
  };
  HEDDLE_TRY(expect("q: rows", rows, args.q.size[1]));
  HEDDLE_TRY(expect("k: rows", rows, args.k.size[1]));
  HEDDLE_TRY(expect("q: heads", plan.heads, args.q.size[2]));
  HEDDLE_TRY(expect("k: heads", plan.kvHeads, args.k.size[2]));
  if (plan.batches)
    HEDDLE_TRY(expect("q: batch", plan.batches, args.q.size[0]));
  HEDDLE_TRY(expect("q_origin", 0, args.q_origin));
  HEDDLE_TRY(expect("k_origin", 0, args.k_origin));
  if (args.carry_out || args.carry_lse)
    return badArguments("carry_out: calls over a group continue nothing; leave it zero");
  for (const heddle_tensor *gradient : {&args.d_q, &args.d_k, &args.d_v})
    if (request.kind.isBackward() && gradient->dtype != HEDDLE_FP32 &&
        (gradient != &args.d_q || !plan.writesQueryGradients()))
      return badArguments("d_q, d_k, d_v: expected fp32 in a call over a group, got dtype " + num(gradient->dtype) +
                          (gradient == &args.d_q ? "; d_q may be of q's type where the plan writes_d_q" : ""));
  return {};
}

/// Sizes that the plan was made of; others would keep keys that do not travel.
Status checkPlannedSizes(const GroupRequest &request) {
  for (uint64_t i = 0; i < request.args.operand_count; ++i) {
    const heddle_operand &operand = request.args.operands[i];
    if (operand.kind != HEDDLE_OPERAND_INT)
      continue;
    for (const PlannedSize &planned : request.plan.sizes)
      if (planned.argument == operand.id && planned.value != operand.value.i64)
        return badArguments(planned.name + ": expected " + num(planned.value) + ", of which the plan was made, got " +
                            num(operand.value.i64) + "; make a plan of it");
  }
  return {};
}

/// Before others wait for the rank: launches find it when these have begun.
Status checkRowTensors(const GroupRequest &request) {
  for (const RowTensor &tensor : request.plan.rowTensors) {
    const char *got = "none";
    for (uint64_t i = 0; i < request.args.operand_count; ++i) {
      const heddle_operand &operand = request.args.operands[i];
      if (operand.id != tensor.argument)
        continue;
      if (operand.kind == HEDDLE_OPERAND_INT) {
        got = "its length: leave that out";
        break;
      }
      if (operand.value.ptr)
        got = nullptr;
    }
    if (got)
      return badArguments("operands: tensor '" + tensor.name + "': expected the rank's rows of it, got " + got);
  }
  return {};
}

/// As those of a call of the rank's rows alone, which launches of parts of them take at their word.
Status checkTensors(const GroupRequest &request, const ShardDevice &device) {
  const KindText text = kindOf(request, request.args.out.dtype == HEDDLE_FP32);
  CallRules rules(text.kind);
  rules.elements = text.elements(request.elements.q);
  rules.memory = device.memory(), rules.alignment = device.alignment();
  rules.needsAllResults = false;
  LaunchSymbols symbols;
  CallSizes sizes(symbols);
  HEDDLE_TRY(checkForeign(text.kind, request.args));
  HEDDLE_TRY(checkRoles(rules, request.args, sizes, symbols));
  return checkScale(request.args.scale);
}

/// What a rank does: a walk, inside of an exchange of heads where its team has other ranks.
class RankCall {
public:
  RankCall(const GroupRequest &request, int32_t rank, char *base) : ofWalk(request), rank(rank) {
    if (request.plan.headRanks > 1) {
      heads.emplace(request, rank, base);
      ofWalk.args = heads->argumentsOfWalk();
      base += heads->workspaceBytes();
    }
    walk.emplace(ofWalk, request.plan.shareOf(rank), base);
  }
  RankCall(const RankCall &) = delete;

  Status lay(ShardDevice &device) { return walk->lay(device); }
  uint64_t workspaceBytes() const { return walk->workspaceBytes() + (heads ? heads->workspaceBytes() : 0); }

  Status run(Transport &transport, ShardDevice &device) {
    const int32_t ofTeam = ofWalk.plan.headRanks, member = rank % ofTeam;
    const RankView team(transport, rank - member), walkers(transport, member, ofTeam);
    if (heads)
      HEDDLE_TRY(heads->arrive(team, device));
    HEDDLE_TRY(walk->run(walkers, device));
    return heads ? heads->leave(team, device) : Status();
  }

private:
  GroupRequest ofWalk; // with the arguments of the walk
  const int32_t rank;
  std::optional<HeadExchange> heads;
  std::optional<GroupShare> walk;
};

} // namespace

Result<uint64_t> groupWorkspace(const GroupRequest &request, int32_t rank, ShardDevice &device) {
  HEDDLE_TRY(checkElements(request));
  if (rank >= request.plan.ranks())
    return badArguments("plan: it is of " + num(request.plan.ranks()) + " ranks, this is rank " + num(rank));
  HEDDLE_TRY(checkShare(request, rank));
  RankCall call(request, rank, anyWorkspace());
  HEDDLE_TRY(call.lay(device));
  return call.workspaceBytes();
}

Status runGroupCall(const GroupRequest &request, Transport &transport, ShardDevice &device, Agreements &agreed) {
  std::optional<RankCall> call;
  auto prepare = [&]() -> Status {
    HEDDLE_TRY(checkRanks(request, transport));
    HEDDLE_TRY(checkElements(request));
    HEDDLE_TRY(checkShare(request, transport.rank()));
    HEDDLE_TRY(checkTensors(request, device));
    HEDDLE_TRY(checkPlannedSizes(request));
    HEDDLE_TRY(checkRowTensors(request));
    call.emplace(request, transport.rank(), static_cast<char *>(request.args.workspace));
    HEDDLE_TRY(call->lay(device));
    if (call->workspaceBytes() <= request.args.workspace_bytes)
      return {};
    return badArguments("workspace: expected " + std::to_string(call->workspaceBytes()) + " bytes, got " +
                        std::to_string(request.args.workspace_bytes));
  };
  const Status own = prepare();
  HEDDLE_TRY(agree(own.isOk() ? Result<std::string>(agreementOf(request)) : own, transport, agreed,
                   /*mayMeet=*/!device.isCaptured()));
  const Status status = call->run(transport, device);
  if (!status.isOk()) // the others need not wait for what will not come
    transport.abort(status.message());
  return status;
}

} // namespace heddle
