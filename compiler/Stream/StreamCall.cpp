#include "compiler/Stream/StreamCall.h"
#include "compiler/Stream/SourceTransport.h"
#include "dialect/Geometry/GroupPlanner.h"
#include "dialect/IR/PatternOperands.h"
#include "runtime/Core/CountText.h"
#include "runtime/Device/Kernel.h"
#include "runtime/Distributed/GroupCall.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr int64_t kWindowPieces = 2; // windows of a step hold as many rows as so many pieces

std::string rowsText(const RowRange &rows) {
  return "rows " + std::to_string(rows.begin) + " to " + std::to_string(rows.end - 1);
}

const RowRange &pieceOf(const GroupPlan &plan) { return plan.layout[0][0]; }

Status atPiece(const GroupPlan &plan, const Status &status) {
  return status.isOk() ? status : Status(status.code(), rowsText(pieceOf(plan)) + ": " + status.message());
}

} // namespace

int64_t StreamCall::bytesOfRow(const RowSource &source) {
  const AttentionSizes &sizes = source.sizes;
  constexpr int64_t kSlots = 2, kCarries = 2, kFloat = sizeof(float);
  const int64_t element = dtypeBytes(source.dtype), dims = sizes.headDim + sizes.valueDim;
  const int64_t keys = sizes.kvHeads * dims * element, queries = sizes.heads * dims * element;
  const int64_t carry = sizes.heads * (sizes.valueDim + 1) * kFloat;
  return sizes.batch * (queries + keys + sizes.heads * kFloat + kSlots * kWindowPieces * keys + kCarries * carry);
}

Status StreamCall::checkTensors(attn::PatternOp pattern) {
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    if (pattern.isOperand(i) && attn::hasQueries(pattern, i))
      return Status::unsupported("a streamed call: tensor '" + pattern.getParameterName(i).str() +
                                 "' of the pattern has an entry for each query, and such rows are not read piece by "
                                 "piece: call it as a whole, or over ranks, which have those of their own rows");
  return {};
}

Result<StreamCall> StreamCall::create(StreamRequest request, StreamMachine &machine) {
  HEDDLE_TRY(checkTensors(request.file.pattern()));
  StreamCall call(std::move(request), machine);
  HEDDLE_TRY(call.planPieces());
  HEDDLE_TRY(call.allocate());
  return call;
}

Status StreamCall::planPieces() {
  const AttentionSizes &tensors = machine->source().sizes;
  const int64_t rows = request.sizes.seqlenQ, pieceRows = request.pieceRows;
  if (tensors.seqlenQ != tensors.seqlenK)
    return Status::unsupported("a streamed call goes through queries and keys alike: expected as many, got " +
                               grouped(tensors.seqlenQ) + " and " + grouped(tensors.seqlenK));
  if (request.firstRow < 0 || request.firstRow >= rows)
    return Status::invalidArgument("first row: expected 0 to " + std::to_string(rows - 1) + ", got " +
                                   std::to_string(request.firstRow));
  const int64_t pieces = (rows - request.firstRow + pieceRows - 1) / pieceRows;
  if (pieces > kMostPieces)
    return Status::invalidArgument(counted(pieces, "piece") + " of " + grouped(pieceRows) + " rows are more than " +
                                   grouped(kMostPieces) + ": take pieces of at least " +
                                   grouped((rows - request.firstRow + kMostPieces - 1) / kMostPieces) + " rows");
  for (int64_t begin = request.firstRow; begin < rows; begin += pieceRows) {
    const attn::ShardLayout layout = attn::pieceLayout(rows, {begin, std::min(rows, begin + pieceRows)});
    attn::GroupPlanRequest wanted{request.file.analysis(), request.sizes, layout};
    wanted.kvHeads = tensors.kvHeads;
    wanted.batches = tensors.batch;
    wanted.digest = request.partDigest;
    wanted.wholes = request.wholes;
    wanted.form = attn::GroupForm::Piece;
    wanted.mostColumns = kWindowPieces * pieceRows;
    HEDDLE_ASSIGN(GroupPlan plan, attn::makeGroupPlan(wanted));
    addToForecast(plan);
    plans.push_back(std::move(plan));
  }
  return {};
}

void StreamCall::addToForecast(const GroupPlan &plan) {
  const AttentionSizes &sizes = machine->source().sizes;
  const int64_t element = dtypeBytes(machine->source().dtype), rows = pieceOf(plan).size();
  const int64_t ofKey = sizes.batch * (sizes.headDim + sizes.valueDim) * element;
  ++figures.pieces;
  for (const GroupStep &step : plan.forward.steps) {
    figures.launches += int64_t(step.ranks[0].launches.size());
    int64_t windowRows = 0;
    for (const RowRange &window : step.ranks[0].windows)
      windowRows += window.size();
    figures.mostWindowRows = std::max(figures.mostWindowRows, windowRows);
  }
  figures.readBytes += sizes.batch * rows * sizes.heads * sizes.headDim * element +
                       (rows * sizes.kvHeads + plan.forward.headRows()) * ofKey;
  figures.writtenBytes += sizes.batch * rows * sizes.heads * (sizes.valueDim * element + int64_t(sizeof(float)));
}

Status StreamCall::allocate() {
  const RowSource &source = machine->source();
  const AttentionSizes &sizes = source.sizes;
  const RowRun rows{0, 1, pieceOf(plans[0]).size()};
  auto take = [&](char *&place, int64_t bytes) -> Status {
    figures.memoryBytes += bytes;
    HEDDLE_ASSIGN(place, machine->allocate(uint64_t(bytes)));
    return {};
  };
  HEDDLE_TRY(take(q, source.bytesOf({Role::q, 0, sizes.batch, rows, 0, sizes.heads})));
  HEDDLE_TRY(take(k, source.bytesOf({Role::k, 0, sizes.batch, rows, 0, sizes.kvHeads})));
  HEDDLE_TRY(take(v, source.bytesOf({Role::v, 0, sizes.batch, rows, 0, sizes.kvHeads})));
  const int64_t outRows = sizes.batch * rows.count * sizes.heads;
  HEDDLE_TRY(take(out, outRows * sizes.valueDim * dtypeBytes(source.dtype)));
  HEDDLE_TRY(take(lse, outRows * int64_t(sizeof(float))));
  for (const GroupPlan &plan : plans) {
    const GroupRequest group{plan, {}, {}, CallElements(source.dtype), argsOf(plan)};
    const Result<uint64_t> bytes = groupWorkspace(group, 0, machine->shard());
    if (!bytes)
      return atPiece(plan, bytes.status());
    figures.workspaceBytes = std::max(figures.workspaceBytes, int64_t(*bytes));
  }
  HEDDLE_ASSIGN(workspace, machine->allocate(uint64_t(figures.workspaceBytes)));
  return {};
}

heddle_attention_args StreamCall::argsOf(const GroupPlan &plan) const {
  const AttentionSizes &sizes = machine->source().sizes;
  const DType dtype = machine->source().dtype;
  const int64_t rows = pieceOf(plan).size();
  heddle_attention_args args = makeAttentionArgs();
  args.q = contiguousTensor(q, dtype, {sizes.batch, rows, sizes.heads, sizes.headDim});
  args.k = contiguousTensor(k, dtype, {sizes.batch, rows, sizes.kvHeads, sizes.headDim});
  args.v = contiguousTensor(v, dtype, {sizes.batch, rows, sizes.kvHeads, sizes.valueDim});
  args.out = contiguousTensor(out, dtype, {sizes.batch, rows, sizes.heads, sizes.valueDim});
  args.lse = reinterpret_cast<float *>(lse);
  args.scale = request.scale;
  args.operands = request.operands.data();
  args.operand_count = request.operands.size();
  args.workspace = workspace;
  args.workspace_bytes = uint64_t(figures.workspaceBytes);
  return args;
}

Status StreamCall::runPiece(const GroupPlan &plan) {
  const AttentionSizes &sizes = machine->source().sizes;
  const RowRun rows{pieceOf(plan).begin, 1, pieceOf(plan).size()};
  HEDDLE_TRY(machine->give({Role::q, 0, sizes.batch, rows, 0, sizes.heads}, q, Queue::compute));
  HEDDLE_TRY(machine->give({Role::k, 0, sizes.batch, rows, 0, sizes.kvHeads}, k, Queue::compute));
  HEDDLE_TRY(machine->give({Role::v, 0, sizes.batch, rows, 0, sizes.kvHeads}, v, Queue::compute));
  SourceTransport transport(plan, sizes.batch, *machine);
  Agreements agreed;
  const GroupRequest group{plan, {}, {}, CallElements(machine->source().dtype), argsOf(plan)};
  HEDDLE_TRY(runGroupCall(group, transport, machine->shard(), agreed));
  return machine->finish();
}

Status StreamCall::run(const std::vector<StreamSink *> &sinks, const std::function<void(double share)> &progress) {
  const int64_t first = request.firstRow, rows = request.sizes.seqlenQ - first;
  for (const GroupPlan &plan : plans) {
    HEDDLE_TRY(atPiece(plan, runPiece(plan)));
    for (StreamSink *sink : sinks)
      HEDDLE_TRY(atPiece(plan, sink->take({pieceOf(plan), out, lse}, *machine)));
    if (progress)
      progress(double(pieceOf(plan).end - first) / double(rows));
  }
  return {};
}

} // namespace heddle
