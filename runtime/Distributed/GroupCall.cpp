//===- GroupCall.cpp - one rank's part of a call over a group -------------===//
// A rank's arguments are cut into those of launches: rows of one of its ranges, columns of a window or of a range.
//===----------------------------------------------------------------------===//
#include "runtime/Distributed/GroupCall.h"
#include "runtime/Core/CallArguments.h"
#include "runtime/Core/Digest.h"
#include "runtime/Distributed/CallTensors.h"
#include "runtime/Distributed/WalkRun.h"

#include <algorithm>
#include <optional>

namespace heddle {
namespace {

std::string num(int64_t value) { return std::to_string(value); }

class GroupCall {
public:
  /// `base`: of the workspace; any multiple of 256 while only its size is asked for.
  GroupCall(const GroupRequest &request, int32_t rank, char *base)
      : plan(request.plan), request(request), rank(rank), args(request.args),
        walk(request.kind.isBackward() ? plan.walkOfGradients() : plan.forward), blocks(walk.blocks[size_t(rank)]),
        memory(base) {
    operands.assign(args.operands, args.operands + args.operand_count);
    for (int64_t argument : plan.wholes) {
      heddle_operand &whole = operands.emplace_back();
      whole.id = int32_t(argument), whole.kind = HEDDLE_OPERAND_INT, whole.value.i64 = plan.rows;
    }
    args.operands = operands.data();
    args.operand_count = operands.size();
  }
  GroupCall(const GroupCall &) = delete;

  Status lay(ShardDevice &device);
  uint64_t workspaceBytes() const { return memory.bytes(); }
  Status run(Transport &transport, ShardDevice &device);

private:
  struct Launch {
    KindText kind;
    heddle_attention_args args;
  };
  struct Carry {
    float *out = nullptr, *lse = nullptr;
  };
  // What a launch on one of the rank's blocks of rows needs beside the caller's tensors.
  struct OwnBlock {
    RowRange rows;
    int64_t first = 0;    // its first row in the rank's tensors
    size_t launches = 0;  // of the walk
    Carry carries[2];     // from launch to launch, in turn
    float *lse = nullptr; // of its rows alone, where the rank has other rows
    float *dLse = nullptr;
  };

  bool isBackward() const { return request.kind.isBackward(); }
  // d_q of another type than fp32 is written.
  Adds addsOfLaunches() const { return args.d_q.dtype == HEDDLE_FP32 ? Adds::all : Adds::keys; }
  DType typeOfQueryGradient() const { return args.d_q.dtype == HEDDLE_FP32 ? DType::fp32 : request.elements.q; }
  bool isTransposed() const { return isBackward() && !plan.transposed.steps.empty(); }
  int64_t bytesOf(Role role) const { return dtypeBytes(request.elements.of(specOf(role).element)); }
  WalkField fieldOf(Role role) const { return {RowPlace::ofTensor(tensorOf(args, role), bytesOf(role)), false}; }
  static WalkField sumOf(const heddle_tensor &tensor) { return {RowPlace::ofTensor(tensor, sizeof(float)), false}; }
  WalkField arrayOf(const float *array) const { return {RowPlace::ofArray(array, plan.heads, args.q.size[1]), true}; }

  Status check() const;
  void layBlocks();
  void layWalks();
  Status layLaunches(ShardDevice &device);

  heddle_attention_args argsOfBlock(const OwnBlock &block) const;
  Launch forwardLaunch(size_t step, const ShardLaunch &launch, size_t number) const;
  Launch backwardLaunch(size_t step, const ShardLaunch &launch) const;
  Launch transposedLaunch(size_t step, const ShardLaunch &launch) const;
  Status copyArray(float *rowsAlone, const float *array, const OwnBlock &block, bool isToRows,
                   ShardDevice &device) const;
  Status runForward(Transport &transport, ShardDevice &device);
  Status runBackward(Transport &transport, ShardDevice &device);
  Status runTransposed(Transport &transport, ShardDevice &device);

  const GroupPlan &plan;
  const GroupRequest &request;
  const int32_t rank;
  heddle_attention_args args;
  std::vector<heddle_operand> operands; // the caller's, and the sizes of the whole
  const GroupWalk &walk;                // from queries to their keys
  const std::vector<RowRange> &blocks;  // of it
  Memory memory;
  std::vector<OwnBlock> own;
  std::optional<WalkRun> ofQueries, transposed;
  float *scratchQ = nullptr, *scratchK = nullptr, *scratchV = nullptr; // gradients that another walk computes
  float *scratchLse = nullptr, *scratchDLse = nullptr;                 // of the queries of one launch
  char *kernelWorkspace = nullptr;
  uint64_t kernelBytes = 0;
};

//===-- layout ----------------------------------------------------------------===//

Status GroupCall::check() const {
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
    if (isBackward() && gradient->dtype != HEDDLE_FP32 && (gradient != &args.d_q || !plan.writesQueryGradients()))
      return badArguments("d_q, d_k, d_v: expected fp32 in a call over a group, got dtype " + num(gradient->dtype) +
                          (gradient == &args.d_q ? "; d_q may be of q's type where the plan writes_d_q" : ""));
  return {};
}

void GroupCall::layBlocks() {
  const int64_t batch = args.q.size[0], valueDim = args.v.size[3];
  for (size_t i = 0; i < blocks.size(); ++i) {
    OwnBlock &block = own.emplace_back();
    block.rows = blocks[i];
    block.first = plan.ownRow(rank, block.rows.begin);
    for (const GroupStep &step : walk.steps)
      for (const ShardLaunch &launch : step.ranks[size_t(rank)].launches)
        block.launches += size_t(launch.rows) == i;
    const int64_t arrayCount = batch * plan.heads * block.rows.size();
    for (size_t carry = 0; !isBackward() && carry < 2 && carry + 1 < block.launches; ++carry)
      block.carries[carry] = {memory.takeFloats(arrayCount * valueDim), memory.takeFloats(arrayCount)};
    if (blocks.size() > 1 && args.lse)
      block.lse = memory.takeFloats(arrayCount);
    if (blocks.size() > 1 && args.d_lse)
      block.dLse = memory.takeFloats(arrayCount);
  }
}

void GroupCall::layWalks() {
  const int64_t batch = args.q.size[0];
  std::vector<WalkField> sums;
  if (isBackward() && !isTransposed())
    sums = {sumOf(args.d_k), sumOf(args.d_v)};
  ofQueries.emplace(plan, walk, rank, batch, plan.kvHeads, std::vector<WalkField>{fieldOf(Role::k), fieldOf(Role::v)},
                    sums);
  ofQueries->setWorkspace(memory.take(int64_t(ofQueries->workspaceBytes())));
  if (!isTransposed())
    return;
  std::vector<WalkField> fields = {fieldOf(Role::q), fieldOf(Role::dOut), fieldOf(Role::out), arrayOf(args.lse)};
  if (args.d_lse)
    fields.push_back(arrayOf(args.d_lse));
  transposed.emplace(plan, plan.transposed, rank, batch, plan.heads, fields, std::vector<WalkField>());
  transposed->setWorkspace(memory.take(int64_t(transposed->workspaceBytes())));
  auto mostColumns = [&](const GroupWalk &of) {
    int64_t most = 0;
    for (const GroupStep &step : of.steps)
      for (const ShardLaunch &launch : step.ranks[size_t(rank)].launches)
        most = std::max(most, launch.columns.size());
    return most;
  };
  const int64_t keys = mostColumns(walk), rows = mostColumns(plan.transposed);
  scratchK = memory.takeFloats(batch * keys * plan.kvHeads * args.k.size[3]);
  scratchV = memory.takeFloats(batch * keys * plan.kvHeads * args.v.size[3]);
  scratchQ = memory.takeFloats(batch * rows * plan.heads * args.q.size[3]);
  scratchLse = memory.takeFloats(batch * rows * plan.heads);
  scratchDLse = memory.takeFloats(batch * rows * plan.heads);
}

/// Room for the largest workspace of a launch.
Status GroupCall::layLaunches(ShardDevice &device) {
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
  for (size_t step = 0; isTransposed() && step < plan.transposed.steps.size(); ++step)
    for (const ShardLaunch &launch : plan.transposed.steps[step].ranks[size_t(rank)].launches)
      HEDDLE_TRY(make(transposedLaunch(step, launch)));
  kernelWorkspace = memory.take(int64_t(kernelBytes));
  return {};
}

Status GroupCall::lay(ShardDevice &device) {
  HEDDLE_TRY(check());
  layBlocks();
  layWalks();
  return layLaunches(device);
}

//===-- arguments of launches -------------------------------------------------===//

/// The caller's, with the queries of a block.
heddle_attention_args GroupCall::argsOfBlock(const OwnBlock &block) const {
  heddle_attention_args of = args;
  const int64_t count = block.rows.size();
  of.q = rowsOf(args.q, bytesOf(Role::q), block.first, count);
  of.out = rowsOf(args.out, bytesOf(Role::out), block.first, count);
  of.q_origin = block.rows.begin;
  of.lse = block.lse ? block.lse : args.lse;
  of.workspace = kernelBytes ? kernelWorkspace : nullptr;
  of.workspace_bytes = kernelBytes;
  return of;
}

GroupCall::Launch GroupCall::forwardLaunch(size_t step, const ShardLaunch &launch, size_t number) const {
  const OwnBlock &block = own[size_t(launch.rows)];
  const bool isLast = number + 1 == block.launches;
  Launch made{{request.kind, !isLast || args.out.dtype == HEDDLE_FP32}, argsOfBlock(block)};
  made.args.k = tensorAt(ofQueries->columns(step, launch, 0), args.k, request.elements.k, launch.columns.size());
  made.args.v = tensorAt(ofQueries->columns(step, launch, 1), args.v, request.elements.v, launch.columns.size());
  made.args.k_origin = launch.columns.begin;
  if (number > 0) {
    made.args.carry_out = block.carries[(number - 1) % 2].out;
    made.args.carry_lse = block.carries[(number - 1) % 2].lse;
  }
  if (!isLast) {
    const Carry &carry = block.carries[number % 2];
    const int64_t dim = args.v.size[3];
    made.args.out = tensorAt(RowPlace::ofRows(carry.out, block.rows.size(), plan.heads, dim * int64_t(sizeof(float))),
                             args.out, DType::fp32, block.rows.size());
    made.args.lse = carry.lse;
  }
  return made;
}

/// Gradients of own queries and of columns.
GroupCall::Launch GroupCall::backwardLaunch(size_t step, const ShardLaunch &launch) const {
  const OwnBlock &block = own[size_t(launch.rows)];
  Launch made{{request.kind, args.out.dtype == HEDDLE_FP32}, argsOfBlock(block)};
  made.kind.kind.adds = addsOfLaunches();
  const int64_t queries = block.rows.size(), keys = launch.columns.size();
  made.args.k = tensorAt(ofQueries->columns(step, launch, 0), args.k, request.elements.k, keys);
  made.args.v = tensorAt(ofQueries->columns(step, launch, 1), args.v, request.elements.v, keys);
  made.args.k_origin = launch.columns.begin;
  made.args.d_out = rowsOf(args.d_out, bytesOf(Role::dOut), block.first, queries);
  made.args.d_lse = block.dLse ? block.dLse : args.d_lse;
  made.args.d_q = rowsOf(args.d_q, dtypeBytes(typeOfQueryGradient()), block.first, queries);
  auto sums = [&](const heddle_tensor &like, size_t field, float *scratch) {
    const int64_t heads = plan.kvHeads, bytes = like.size[3] * int64_t(sizeof(float));
    const RowPlace place =
        isTransposed() ? RowPlace::ofRows(scratch, keys, heads, bytes) : ofQueries->sums(step, launch, field);
    return tensorAt(place, like, DType::fp32, keys);
  };
  made.args.d_k = sums(args.d_k, 0, scratchK);
  made.args.d_v = sums(args.d_v, 1, scratchV);
  return made;
}

/// Gradients of own keys, of queries that came.
GroupCall::Launch GroupCall::transposedLaunch(size_t step, const ShardLaunch &launch) const {
  const RowRange &keysOf = plan.transposed.blocks[size_t(rank)][size_t(launch.rows)];
  const int64_t first = plan.ownRow(rank, keysOf.begin);
  Launch made{{request.kind, args.out.dtype == HEDDLE_FP32}, args};
  made.kind.kind.adds = addsOfLaunches();
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
  made.args.k = rowsOf(args.k, bytesOf(Role::k), first, keys);
  made.args.v = rowsOf(args.v, bytesOf(Role::v), first, keys);
  made.args.k_origin = keysOf.begin;
  const DType typeOfQ = typeOfQueryGradient();
  made.args.d_q = tensorAt(RowPlace::ofRows(scratchQ, queries, plan.heads, args.q.size[3] * dtypeBytes(typeOfQ)),
                           args.d_q, typeOfQ, queries);
  made.args.d_k = rowsOf(args.d_k, sizeof(float), first, keys);
  made.args.d_v = rowsOf(args.d_v, sizeof(float), first, keys);
  made.args.workspace = kernelBytes ? kernelWorkspace : nullptr;
  made.args.workspace_bytes = kernelBytes;
  return made;
}

//===-- the call --------------------------------------------------------------===//

/// Between an array of all rows of the rank and one of the rows of a block.
Status GroupCall::copyArray(float *rowsAlone, const float *array, const OwnBlock &block, bool isToRows,
                            ShardDevice &device) const {
  const RowPlace alone = RowPlace::ofArray(rowsAlone, plan.heads, block.rows.size());
  const RowPlace all = RowPlace::ofArray(array, plan.heads, args.q.size[1]).at(block.first, 0);
  const RowPlace &to = isToRows ? alone : all, &from = isToRows ? all : alone;
  return device.copy({to, from, args.q.size[0], block.rows.size(), plan.heads}, Queue::compute);
}

Status GroupCall::runForward(Transport &transport, ShardDevice &device) {
  std::vector<size_t> numbers(own.size(), 0);
  HEDDLE_TRY(ofQueries->run(transport, device, [&](size_t step, const ShardLaunch &launch) {
    const Launch made = forwardLaunch(step, launch, numbers[size_t(launch.rows)]++);
    return device.launch(made.kind, made.args);
  }));
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

Status GroupCall::runBackward(Transport &transport, ShardDevice &device) {
  for (const heddle_tensor *gradient : {&args.d_q, &args.d_k, &args.d_v})
    if (gradient->dtype == HEDDLE_FP32)
      HEDDLE_TRY(clearTensor(*gradient, device));
  for (const OwnBlock &block : own) {
    if (block.lse)
      HEDDLE_TRY(copyArray(block.lse, args.lse, block, /*isToRows=*/true, device));
    if (block.dLse)
      HEDDLE_TRY(copyArray(block.dLse, args.d_lse, block, /*isToRows=*/true, device));
  }
  HEDDLE_TRY(ofQueries->run(transport, device, [&](size_t step, const ShardLaunch &launch) {
    const Launch made = backwardLaunch(step, launch);
    return device.launch(made.kind, made.args);
  }));
  return isTransposed() ? runTransposed(transport, device) : Status();
}

Status GroupCall::runTransposed(Transport &transport, ShardDevice &device) {
  return transposed->run(transport, device, [&](size_t step, const ShardLaunch &launch) -> Status {
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
    return device.launch(made.kind, made.args);
  });
}

Status GroupCall::run(Transport &transport, ShardDevice &device) {
  return isBackward() ? runBackward(transport, device) : runForward(transport, device);
}

/// Sizes do not depend on where a workspace lies.
char *anyWorkspace() { return reinterpret_cast<char *>(uintptr_t(1) << 20); }

/// Which rows are whose, in a few letters.
std::string layoutOf(const GroupPlan &plan) {
  std::string text;
  for (const std::vector<RowRange> &ranges : plan.layout) {
    for (const RowRange &range : ranges)
      text += num(range.begin) + ":" + num(range.end) + ",";
    text += ";";
  }
  return sha256Hex(text).substr(0, 16);
}

/// What all ranks of a call have in common, for people who are told where they differ: the version first, as another one
/// may have other lines. Numbers of operands are the pattern's.
std::string agreementOf(const GroupRequest &request) {
  const heddle_attention_args &args = request.args;
  const GroupPlan &plan = request.plan;
  std::string text = std::string("version ") + heddle_version();
  auto add = [&](const std::string &name, const std::string &value) { text += "\n" + name + " " + value; };
  add("kind", KindText{request.kind, args.out.dtype == HEDDLE_FP32}.str());
  add("q", dtypeName(request.elements.q));
  for (const auto &[name, value] :
       {std::pair("batch", args.q.size[0]), {"head_dim", args.q.size[3]}, {"value_dim", args.v.size[3]},
        {"d_lse", int64_t(args.d_lse != nullptr)}, {"seqlen", plan.rows}, {"heads", plan.heads}, {"kv_heads", plan.kvHeads}})
    add(name, num(value));
  add("pattern", plan.digest);
  add("scale", std::to_string(args.scale));
  for (uint64_t i = 0; i < args.operand_count; ++i)
    if (const heddle_operand &operand = args.operands[i]; operand.kind != HEDDLE_OPERAND_POINTER)
      add("operand " + num(operand.id),
          operand.kind == HEDDLE_OPERAND_INT ? num(operand.value.i64) : std::to_string(operand.value.f64));
  add("layout", layoutOf(plan));
  add("plan", request.planDigest);
  return text;
}

Status checkRanks(const GroupRequest &request, const Transport &transport) {
  if (transport.ranks() == request.plan.ranks())
    return {};
  return badArguments("plan: it is of " + num(request.plan.ranks()) + " ranks, the group has " + num(transport.ranks()));
}

} // namespace

Result<uint64_t> groupWorkspace(const GroupRequest &request, int32_t rank, ShardDevice &device) {
  if (rank >= request.plan.ranks())
    return badArguments("plan: it is of " + num(request.plan.ranks()) + " ranks, this is rank " + num(rank));
  GroupCall call(request, rank, anyWorkspace());
  HEDDLE_TRY(call.lay(device));
  return call.workspaceBytes();
}

Status runGroupCall(const GroupRequest &request, Transport &transport, ShardDevice &device, Agreements &agreed) {
  std::optional<GroupCall> call;
  auto prepare = [&]() -> Status {
    HEDDLE_TRY(checkRanks(request, transport));
    call.emplace(request, transport.rank(), static_cast<char *>(request.args.workspace));
    HEDDLE_TRY(call->lay(device));
    if (call->workspaceBytes() <= request.args.workspace_bytes)
      return {};
    return badArguments("workspace: expected " + std::to_string(call->workspaceBytes()) + " bytes, got " +
                        std::to_string(request.args.workspace_bytes));
  };
  const Status own = prepare();
  HEDDLE_TRY(agree(own.isOk() ? Result<std::string>(agreementOf(request)) : own, transport, agreed));
  const Status status = call->run(transport, device);
  if (!status.isOk()) // the others need not wait for what will not come
    transport.abort(status.message());
  return status;
}

} // namespace heddle
