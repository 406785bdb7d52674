#include "runtime/Api/GroupHandles.h"
#include "runtime/Core/CallArguments.h"
#include "runtime/Distributed/GroupCall.h"
#include "runtime/Distributed/LocalTransport.h"
#include "runtime/Distributed/NcclTransport.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

using namespace heddle;

namespace {

Result<std::chrono::milliseconds> limitOf(const char *what, double seconds) {
  constexpr double kMostSeconds = 1e6;
  if (seconds == 0)
    return kDefaultRankLimit;
  if (!(seconds > 0 && seconds <= kMostSeconds))
    return Status::invalidArgument(std::string(what) + ": limit_seconds: expected 0 to 1e6, got " +
                                   std::to_string(seconds));
  return std::chrono::milliseconds(std::max<int64_t>(1, std::llround(seconds * 1000)));
}

Status openOverNccl(Result<std::unique_ptr<NcclTransport>> joined, heddle_group **group) {
  HEDDLE_TRY(joined.status());
  HEDDLE_ASSIGN(std::unique_ptr<CudaShard> shard, CudaShard::create((*joined)->device()));
  *group = new heddle_group{joined.take(), std::move(shard)};
  return {};
}

// A call of the C interface: its arguments as they are known here, and its kernels.
class GpuCall {
public:
  GpuCall(const heddle_group &group, const heddle_group_plan &plan)
      : group(group), plan(*plan.plan), digests(plan.digests) {}

  Status read(const char *what, const heddle_kernel *const *given, int32_t count, const char *kind,
              const heddle_attention_args &givenArgs) {
    if (!group.shard)
      return Status::invalidArgument(std::string(what) + ": group: it is one of threads on processors");
    HEDDLE_ASSIGN(KindText known, KindText::parse(kind ? kind : "forward"));
    text = std::move(known);
    HEDDLE_TRY(readArguments(givenArgs, args));
    const std::optional<DType> dtype = dtypeOfCode(args.q.dtype);
    if (!dtype)
      return badArguments("q: " + expectedElement(&ElementTraits::isOfCalls, args.q.dtype));
    elements = text.elements(*dtype);
    for (int32_t i = 0; i < count; ++i) {
      HEDDLE_TRY(checkOpen(what, "kernels", given[i]));
      kernels.push_back(given[i]->found.kernel);
      if (kernels.back().record().pattern != plan.digest)
        return Status::invalidArgument(std::string(what) + ": kernels: number " + std::to_string(i) +
                                       " is of another pattern than the plan's pattern of parts");
    }
    return {};
  }
  GroupRequest request() const { return {plan, digests, text.kind, elements, args}; }

  const heddle_group &group;
  const GroupPlan &plan;
  const GroupDigests &digests;
  KindText text;
  CallElements elements;
  heddle_attention_args args = {};
  std::vector<Kernel> kernels;
};

} // namespace

extern "C" {

heddle_status heddle_group_plan_parse(const char *text, heddle_group_plan **plan) {
  return guarded([&]() -> Status {
    if (!text || !plan)
      return missing("parse group plan", text ? "plan" : "text");
    HEDDLE_ASSIGN(GroupPlan parsed, GroupPlan::parse(text));
    *plan = new heddle_group_plan(std::move(parsed));
    return {};
  });
}

heddle_status heddle_group_plan_get_info(const heddle_group_plan *plan, heddle_group_plan_info *info) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("group plan info", "plan", plan));
    if (!info)
      return missing("group plan info", "info");
    const GroupPlan &known = *plan->plan;
    heddle_group_plan_info written = {};
    written.struct_size = sizeof(written);
    written.ranks = known.ranks();
    written.rows = known.rows, written.heads = known.heads, written.kv_heads = known.kvHeads;
    written.travelling = known.travellingKeys();
    written.pattern = known.digest.c_str();
    written.text = plan->text->c_str();
    written.writes_d_q = known.writesQueryGradients();
    return writeVersioned("group plan info", written, offsetof(heddle_group_plan_info, rows), *info);
  });
}

heddle_status heddle_group_plan_rows(const heddle_group_plan *plan, int32_t rank, int64_t *rows) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("rows of a rank", "plan", plan));
    if (!rows)
      return missing("rows of a rank", "rows");
    if (rank < 0 || rank >= plan->plan->ranks())
      return Status::invalidArgument("rows of a rank: rank: expected 0 to " + std::to_string(plan->plan->ranks() - 1) +
                                     ", got " + std::to_string(rank));
    *rows = plan->plan->rowsOf(rank);
    return {};
  });
}

void heddle_group_plan_close(heddle_group_plan *plan) { closeHandle(plan); }

heddle_status heddle_group_open_local(int32_t ranks, double limit_seconds, heddle_group **groups) {
  constexpr const char *what = "open a group of threads";
  constexpr int32_t kMostRanks = 1024;
  return guarded([&]() -> Status {
    if (!groups)
      return missing(what, "groups");
    if (ranks < 1 || ranks > kMostRanks)
      return Status::invalidArgument(std::string(what) + ": ranks: expected 1 to " + std::to_string(kMostRanks) +
                                     ", got " + std::to_string(ranks));
    HEDDLE_ASSIGN(const std::chrono::milliseconds limit, limitOf(what, limit_seconds));
    std::vector<std::unique_ptr<Transport>> transports = localTransports(ranks, limit);
    for (size_t rank = 0; rank < transports.size(); ++rank)
      groups[rank] = new heddle_group{std::move(transports[rank])};
    return {};
  });
}

heddle_status heddle_group_make_id(void *id) {
  return guarded([&]() -> Status {
    if (!id)
      return missing("make the id of a group", "id");
    HEDDLE_ASSIGN(const nccl::UniqueId made, NcclTransport::makeId());
    static_assert(sizeof made == HEDDLE_GROUP_ID_BYTES, "ids have as many bytes as NCCL's");
    std::memcpy(id, &made, sizeof made);
    return {};
  });
}

heddle_status heddle_group_open(heddle_device *device, const void *id, int32_t rank, int32_t ranks,
                                double limit_seconds, heddle_group **group) {
  constexpr const char *what = "open a group of GPUs";
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(what, "device", device));
    if (!id || !group)
      return missing(what, id ? "group" : "id");
    HEDDLE_ASSIGN(const std::chrono::milliseconds limit, limitOf(what, limit_seconds));
    nccl::UniqueId known;
    std::memcpy(&known, id, sizeof known);
    return openOverNccl(NcclTransport::join(device->device, known, {rank, ranks}, limit), group);
  });
}

heddle_status heddle_group_open_nccl(void *communicator, int32_t rank, int32_t ranks, double limit_seconds,
                                     heddle_group **group) {
  constexpr const char *what = "open a group of GPUs";
  return guarded([&]() -> Status {
    if (!communicator || !group)
      return missing(what, communicator ? "group" : "communicator");
    HEDDLE_ASSIGN(const std::chrono::milliseconds limit, limitOf(what, limit_seconds));
    return openOverNccl(NcclTransport::borrow(communicator, {rank, ranks}, limit), group);
  });
}

heddle_status heddle_group_workspace(const heddle_group *group, const heddle_group_plan *plan,
                                     const heddle_kernel *const *kernels, int32_t kernel_count, const char *kind,
                                     const heddle_attention_args *args, uint64_t *bytes) {
  constexpr const char *what = "workspace of a group's call";
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(what, "group", group));
    HEDDLE_TRY(checkOpen(what, "plan", plan));
    if (!args || !bytes || (kernel_count > 0 && !kernels))
      return missing(what, !args ? "args" : bytes ? "kernels" : "bytes");
    GpuCall call(*group, *plan);
    HEDDLE_TRY(call.read(what, kernels, kernel_count, kind, *args));
    group->shard->serve(call.kernels, nullptr);
    HEDDLE_ASSIGN(const uint64_t needed, groupWorkspace(call.request(), group->transport->rank(), *group->shard));
    *bytes = needed;
    return {};
  });
}

heddle_status heddle_group_launch(heddle_group *group, const heddle_group_plan *plan,
                                  const heddle_kernel *const *kernels, int32_t kernel_count, const char *kind,
                                  void *stream, const heddle_attention_args *args) {
  constexpr const char *what = "call over a group";
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(what, "group", group));
    HEDDLE_TRY(checkOpen(what, "plan", plan));
    if (!args || (kernel_count > 0 && !kernels))
      return missing(what, args ? "kernels" : "args");
    GpuCall call(*group, *plan);
    const Status refused = call.read(what, kernels, kernel_count, kind, *args);
    if (group->shard)
      group->shard->serve(call.kernels, static_cast<cuda::Stream>(stream));
    if (!refused.isOk())
      return agree(refused, *group->transport, group->agreed, !group->shard || !group->shard->isCaptured());
    return runGroupCall(call.request(), *group->transport, *group->shard, group->agreed);
  });
}

heddle_status heddle_group_wait(heddle_group *group, void *stream) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("wait for a group", "group", group));
    return group->transport->wait(stream);
  });
}

heddle_status heddle_group_abort(heddle_group *group, const char *why) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("abort group", "group", group));
    group->transport->abort(why ? why : "the call was given up");
    return {};
  });
}

void heddle_group_close(heddle_group *group) { closeHandle(group); }

} // extern "C"
