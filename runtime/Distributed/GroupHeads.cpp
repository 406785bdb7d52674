// q, k and v go to the ranks of their heads, one launch meets them all, and what it wrote goes home.
#include "runtime/Distributed/GroupShare.h"

namespace heddle {

void GroupShare::layHeads() {
  const HeadRange queryHeads = plan.headsOf(rank, /*areKeys=*/false), keyHeads = plan.headsOf(rank, /*areKeys=*/true);
  std::vector<WalkField> ofQuery = {fieldOf(Role::q)}, results, sums;
  if (isBackward()) {
    for (Role role : {Role::dOut, Role::out})
      ofQuery.push_back(fieldOf(role));
    ofQuery.push_back(arrayOf(args.lse));
    if (args.d_lse)
      ofQuery.push_back(arrayOf(args.d_lse));
    results = {{RowPlace::ofTensor(args.d_q, dtypeBytes(typeOfQueryGradient())), false, /*isAll=*/true}};
    sums = {sumOf(args.d_k), sumOf(args.d_v)};
  } else {
    results = {{fieldOf(Role::out).own, false, /*isAll=*/true, /*isWritten=*/true}};
    if (args.lse)
      results.push_back({arrayOf(args.lse).own, true, /*isAll=*/true, /*isWritten=*/true});
  }
  headKeys = plan.walkOfHeads(/*areKeys=*/true), headQueries = plan.walkOfHeads(/*areKeys=*/false);
  ofQueries.emplace(plan, headKeys, rank, args.q.size[0], plan.kvHeads, keyHeads,
                    std::vector<WalkField>{fieldOf(Role::k), fieldOf(Role::v)}, sums);
  transposed.emplace(plan, headQueries, rank, args.q.size[0], plan.heads, queryHeads, ofQuery, results);
  for (WalkRun *run : {&*ofQueries, &*transposed})
    run->setWorkspace(memory.take(int64_t(run->workspaceBytes())));
}

GroupShare::Launch GroupShare::headsLaunch() const {
  const ShardLaunch all{0, 0, 0, {0, plan.rows}};
  Launch made{isBackward() ? kindOfGradients() : kindOfLaunch(args.out.dtype == HEDDLE_FP32), args};
  auto set = [&](heddle_tensor &tensor, const RowPlace &place, DType dtype, bool isKey) {
    tensor = tensorAt(place, tensor, dtype, plan.rows);
    tensor.size[2] = plan.headsOf(rank, isKey).count;
  };
  auto array = [](const RowPlace &place) { return reinterpret_cast<float *>(place.base); };
  set(made.args.q, transposed->columns(0, all, 0), request.elements.q, false);
  set(made.args.k, ofQueries->columns(0, all, 0), request.elements.k, true);
  set(made.args.v, ofQueries->columns(0, all, 1), request.elements.v, true);
  if (isBackward()) {
    set(made.args.d_out, transposed->columns(0, all, 1), request.elements.out, false);
    set(made.args.out, transposed->columns(0, all, 2), request.elements.out, false);
    made.args.lse = array(transposed->columns(0, all, 3));
    made.args.d_lse = args.d_lse ? array(transposed->columns(0, all, 4)) : nullptr;
    set(made.args.d_q, transposed->sums(0, all, 0), typeOfQueryGradient(), false);
    set(made.args.d_k, ofQueries->sums(0, all, 0), DType::fp32, true);
    set(made.args.d_v, ofQueries->sums(0, all, 1), DType::fp32, true);
  } else {
    set(made.args.out, transposed->sums(0, all, 0), request.elements.out, false);
    made.args.lse = args.lse ? array(transposed->sums(0, all, 1)) : nullptr;
  }
  made.args.workspace = kernelBytes ? kernelWorkspace : nullptr;
  made.args.workspace_bytes = kernelBytes;
  return made;
}

Status GroupShare::runHeads(Transport &transport, ShardDevice &device) {
  HEDDLE_TRY(clearGradients(device));
  const std::array runs = {&*transposed, &*ofQueries};
  for (const WalkRun *run : runs)
    HEDDLE_TRY(run->arrive(transport, device));
  for (const WalkRun *run : runs)
    HEDDLE_TRY(run->place(device));
  HEDDLE_TRY(device.follow(Queue::compute, Queue::link));
  const Launch made = headsLaunch();
  HEDDLE_TRY(device.launch(made.kind, made.args, Queue::compute));
  for (const WalkRun *run : runs)
    HEDDLE_TRY(run->leave(transport, device));
  for (const WalkRun *run : runs)
    HEDDLE_TRY(run->settle(device));
  return device.follow(Queue::compute, Queue::link);
}

} // namespace heddle
