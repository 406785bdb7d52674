#include "compiler/Tools/ProcessStats.h"

#include "runtime/Core/KernelRecord.h"
#include "runtime/Include/heddle_stats.h"

namespace heddle::cli {

Json processStats() {
  heddle_stats now = {};
  now.struct_size = sizeof(now);
  if (heddle_stats_get(&now) != HEDDLE_OK)
    return {};
  Json found = Json::object();
  for (int match = 0; match < 5; ++match)
    found[matchKindName(MatchKind(match))] = now.found[match];
  return {{"launches", now.launches},           {"found", std::move(found)},
          {"compilations", now.compilations},   {"compilation_seconds", now.compilation_seconds},
          {"searches", now.searches},           {"search_seconds", now.search_seconds},
          {"store_waits", now.store_waits},     {"store_wait_seconds", now.store_wait_seconds},
          {"store_retries", now.store_retries}, {"workspace_peak_bytes", now.workspace_peak_bytes}};
}

} // namespace heddle::cli
