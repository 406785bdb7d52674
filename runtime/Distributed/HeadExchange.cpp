#include "runtime/Distributed/HeadExchange.h"

#include <array>

namespace heddle {
namespace {

Status ofHeads(const Status &status) {
  return status.isOk() ? status : Status(status.code(), "exchange of heads: " + status.message());
}

float *arrayAt(const RowPlace &place) { return reinterpret_cast<float *>(place.base); }

} // namespace

HeadExchange::HeadExchange(const GroupRequest &request, int32_t rank, char *base)
    : request(request), team(rank / request.plan.headRanks), member(rank % request.plan.headRanks),
      own(request.plan.layoutOfTeam(team)[size_t(member)]), rows(rowCount(request.plan.rowsOfTeam(team))),
      walkOfQueries(request.plan.walkOfHeads(team, /*areKeys=*/false)),
      walkOfKeys(request.plan.walkOfHeads(team, /*areKeys=*/true)), memory(base), queries(makeQueries()),
      keys(makeKeys()) {
  for (WalkRun *run : {&keys, &queries})
    run->setWorkspace(memory.take(int64_t(run->workspaceBytes())));
}

WalkRun HeadExchange::makeRun(const GroupWalk &walk, bool areKeys, std::vector<WalkField> fields,
                              std::vector<WalkField> results) const {
  for (WalkField &result : results)
    result.isWritten = true; // by the walk
  return {own,
          walk,
          member,
          request.args.q.size[0],
          areKeys ? request.plan.kvHeads : request.plan.heads,
          request.plan.headsOf(member, areKeys),
          std::move(fields),
          std::move(results)};
}

WalkRun HeadExchange::makeQueries() const {
  const heddle_attention_args &args = request.args;
  std::vector<WalkField> fields = {fieldOf(request, Role::q)}, results;
  if (isBackward()) {
    for (Role role : {Role::dOut, Role::out})
      fields.push_back(fieldOf(request, role));
    fields.push_back(arrayOf(request, args.lse));
    if (args.d_lse)
      fields.push_back(arrayOf(request, args.d_lse));
    results = {{RowPlace::ofTensor(args.d_q, dtypeBytes(typeOfQueryGradient(request)))}};
  } else {
    results = {fieldOf(request, Role::out)};
    if (args.lse)
      results.push_back(arrayOf(request, args.lse));
  }
  for (WalkField &result : results)
    result.isAll = true;
  return makeRun(walkOfQueries, /*areKeys=*/false, std::move(fields), std::move(results));
}

/// Heads of keys may come home from several members.
WalkRun HeadExchange::makeKeys() const {
  std::vector<WalkField> sums;
  if (isBackward())
    sums = {sumOf(request.args.d_k), sumOf(request.args.d_v)};
  return makeRun(walkOfKeys, /*areKeys=*/true, {fieldOf(request, Role::k), fieldOf(request, Role::v)}, std::move(sums));
}

heddle_attention_args HeadExchange::argumentsOfWalk() const {
  const ShardLaunch all{0, 0, 0, {0, rows}};
  heddle_attention_args args = request.args;
  auto set = [&](heddle_tensor &tensor, const RowPlace &place, DType dtype, bool isOfKeys) {
    if (!tensor.ptr) // which launches refuse
      return;
    tensor = tensorAt(place, tensor, dtype, rows);
    tensor.size[2] = request.plan.headsOf(member, isOfKeys).count;
  };
  set(args.q, queries.columns(0, all, 0), request.elements.q, false);
  set(args.k, keys.columns(0, all, 0), request.elements.k, true);
  set(args.v, keys.columns(0, all, 1), request.elements.v, true);
  if (isBackward()) {
    set(args.d_out, queries.columns(0, all, 1), request.elements.out, false);
    set(args.out, queries.columns(0, all, 2), request.elements.out, false);
    args.lse = args.lse ? arrayAt(queries.columns(0, all, 3)) : nullptr;
    args.d_lse = args.d_lse ? arrayAt(queries.columns(0, all, 4)) : nullptr;
    set(args.d_q, queries.sums(0, all, 0), typeOfQueryGradient(request), false);
    set(args.d_k, keys.sums(0, all, 0), DType::fp32, true);
    set(args.d_v, keys.sums(0, all, 1), DType::fp32, true);
  } else {
    set(args.out, queries.sums(0, all, 0), request.elements.out, false);
    args.lse = args.lse ? arrayAt(queries.sums(0, all, 1)) : nullptr;
  }
  return args;
}

Status HeadExchange::arrive(const RankView &team, ShardDevice &device) const {
  for (const heddle_tensor *sum : {&request.args.d_k, &request.args.d_v})
    if (isBackward())
      HEDDLE_TRY(clearSums(*sum, device));
  const std::array runs = {&queries, &keys};
  for (const WalkRun *run : runs)
    HEDDLE_TRY(ofHeads(run->arrive(team, device)));
  for (const WalkRun *run : runs)
    HEDDLE_TRY(run->place(device));
  return device.follow(Queue::compute, Queue::link);
}

Status HeadExchange::leave(const RankView &team, ShardDevice &device) const {
  const std::array runs = {&queries, &keys};
  for (const WalkRun *run : runs)
    HEDDLE_TRY(ofHeads(run->leave(team, device)));
  for (const WalkRun *run : runs)
    HEDDLE_TRY(run->settle(device));
  return {};
}

} // namespace heddle
