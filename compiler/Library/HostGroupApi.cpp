// Plans over ranks, and ranks that are threads, in the C interface.
#include "compiler/Library/CarriedTransport.h"
#include "compiler/Library/HostShard.h"
#include "runtime/Api/GroupHandles.h"
#include "runtime/Distributed/GroupCall.h"

#include <cstddef>
#include <cstring>
#include <mutex>
#include <set>

using namespace heddle;

namespace {

Status checkOptions(const char *what, const heddle_group_options &options) {
  constexpr int64_t kMostRows = int64_t(1) << 30;
  const std::string who = std::string(what) + ": ";
  auto expect = [&](const char *field, const std::string &range, int64_t got, bool isFine) {
    return isFine ? Status()
                  : Status::invalidArgument(who + field + ": expected " + range + ", got " + std::to_string(got));
  };
  HEDDLE_TRY(expect("ranks", "1 or more", options.ranks, options.ranks >= 1));
  HEDDLE_TRY(expect("seqlen", "1 to 2^30", options.seqlen, options.seqlen >= 1 && options.seqlen <= kMostRows));
  HEDDLE_TRY(expect("heads", "1 to 2^20", options.heads, options.heads >= 1 && options.heads <= (1 << 20)));
  HEDDLE_TRY(expect("kv_heads", "a divisor of heads", options.kv_heads,
                    options.kv_heads >= 1 && options.heads % options.kv_heads == 0));
  constexpr uint32_t kFlags = HEDDLE_GROUP_PLACEMENT_FREE | HEDDLE_GROUP_GRADIENTS;
  HEDDLE_TRY(expect("flags", "HEDDLE_GROUP_*", options.flags, (options.flags & ~kFlags) == 0));
  for (const auto &[field, size] :
       {std::pair("batch", options.batch), {"head_dim", options.head_dim}, {"value_dim", options.value_dim}})
    HEDDLE_TRY(expect(field, "0 to 2^20", size, size >= 0 && size <= (1 << 20)));
  for (const auto &[field, rate] : {std::pair("kernel_tflops", options.kernel_tflops),
                                    {"link_gbps", options.link_gbps},
                                    {"link_us", options.link_us},
                                    {"host_link_gbps", options.host_link_gbps},
                                    {"host_link_us", options.host_link_us}})
    if (!(rate >= 0 && rate <= 1e6))
      return Status::invalidArgument(who + field + ": expected 0 to 1e6, got " + std::to_string(rate));
  HEDDLE_TRY(expect("host_ranks", "0 or more", options.host_ranks, options.host_ranks >= 0));
  HEDDLE_TRY(expect("farthest_gap", "0 or more", options.farthest_gap, options.farthest_gap >= 0));
  return expect("column_step", "0 or more", options.column_step, options.column_step >= 0);
}

Result<heddle_group_options> readOptions(const char *what, const heddle_group_options &options) {
  heddle_group_options known;
  HEDDLE_TRY(readVersioned(what, options, offsetof(heddle_group_options, layout), known));
  HEDDLE_TRY(checkOptions(what, known));
  return known;
}

// Of static storage: names of forms are few.
const char *kept(const std::string &name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard<std::mutex> lock(mutex);
  return names.insert(name).first->c_str();
}

Status run(const char *what, heddle_group &group, const heddle_group_plan &planned,
           std::shared_ptr<CompiledPattern> part, const char *kind, const heddle_attention_args &given,
           int32_t threads) {
  const GroupPlan &plan = *planned.plan;
  HEDDLE_ASSIGN(const KindText text, KindText::parse(kind ? kind : "forward"));
  if (plan.digest != part->info().digest)
    return Status::invalidArgument(std::string(what) + ": plan: it is of another pattern of parts (" +
                                   plan.digest.substr(0, 12) + ", not " +
                                   std::string(part->info().digest).substr(0, 12) + ")");
  heddle_attention_args args;
  HEDDLE_TRY(readArguments(given, args));
  const std::optional<DType> dtype = dtypeOfCode(args.q.dtype);
  if (!dtype)
    return badArguments("q: " + expectedElement(&ElementTraits::isOfCalls, args.q.dtype));
  HostShard shard(std::move(part), threads);
  GroupRequest request{plan, planned.digests, text.kind, text.elements(*dtype), args};
  const Result<uint64_t> bytes = groupWorkspace(request, group.transport->rank(), shard);
  const std::unique_ptr<char[]> workspace(
      new char[bytes ? *bytes : 0]); // where it failed the call says so, to all ranks
  std::memset(workspace.get(), 0xff,
              bytes ? *bytes : 0); // no number, whatever the length of elements: nobody counts on zeros
  request.args.workspace = workspace.get();
  request.args.workspace_bytes = bytes ? *bytes : 0;
  return runGroupCall(request, *group.transport, shard, group.agreed);
}

} // namespace

extern "C" {

heddle_status heddle_group_plan_make(const heddle_pattern *pattern, const heddle_group_options *options,
                                     heddle_group_plan **plan) {
  constexpr const char *what = "plan a group";
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(what, "pattern", pattern));
    if (!options || !plan)
      return missing(what, options ? "plan" : "options");
    HEDDLE_ASSIGN(const heddle_group_options known, readOptions(what, *options));
    HEDDLE_ASSIGN(GroupPlan made, pattern->pattern->groupPlan(known));
    *plan = new heddle_group_plan(std::move(made));
    return {};
  });
}

heddle_status heddle_group_choose_form(const heddle_pattern *pattern, const heddle_group_options *options,
                                       const char **form, double *milliseconds) {
  constexpr const char *what = "choose the form of a group's plan";
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(what, "pattern", pattern));
    if (!options || !form || !milliseconds)
      return missing(what, !options ? "options" : form ? "milliseconds" : "form");
    HEDDLE_ASSIGN(const heddle_group_options known, readOptions(what, *options));
    HEDDLE_ASSIGN(const FormChoice choice, pattern->pattern->groupForm(known));
    *form = kept(nameOf(choice.form, known.ranks));
    *milliseconds = choice.ms.value_or(0);
    return {};
  });
}

heddle_status heddle_group_open_carried(int32_t rank, int32_t ranks, heddle_exchange exchange, void *context,
                                        heddle_group **group) {
  constexpr const char *what = "open a group of processes";
  return guarded([&]() -> Status {
    if (!exchange || !group)
      return missing(what, exchange ? "group" : "exchange");
    if (ranks < 1 || rank < 0 || rank >= ranks)
      return Status::invalidArgument(std::string(what) + ": rank: expected one of " + std::to_string(ranks) +
                                     " ranks, got " + std::to_string(rank));
    *group =
        new heddle_group{std::make_unique<CarriedTransport>(CarriedTransport::Carrier{exchange, context}, rank, ranks)};
    return {};
  });
}

heddle_status heddle_group_run(heddle_group *group, const heddle_group_plan *plan, const heddle_pattern *part,
                               const char *kind, const heddle_attention_args *args, int32_t threads) {
  constexpr const char *what = "call over a group";
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(what, "group", group));
    HEDDLE_TRY(checkOpen(what, "plan", plan));
    HEDDLE_TRY(checkOpen(what, "pattern", part));
    if (!args)
      return missing(what, "args");
    return run(what, *group, *plan, part->pattern, kind, *args, threads);
  });
}

} // extern "C"
