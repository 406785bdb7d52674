//===- GroupApi.cpp - groups and their plans in the C interface -------------===//
#include "runtime/Api/GroupHandles.h"
#include "runtime/Distributed/LocalTransport.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

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
    written.travelling = known.forward.headRows();
    written.pattern = known.digest.c_str();
    written.text = plan->text->c_str();
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

heddle_status heddle_group_abort(heddle_group *group, const char *why) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("abort group", "group", group));
    group->transport->abort(why ? why : "the call was given up");
    return {};
  });
}

void heddle_group_close(heddle_group *group) { closeHandle(group); }

} // extern "C"
