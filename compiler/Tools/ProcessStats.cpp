#include "compiler/Tools/ProcessStats.h"

#include "runtime/Core/KernelRecord.h"
#include "runtime/Include/heddle_stats.h"

namespace heddle::cli {
namespace {

Json foundOf(const int64_t (&found)[5]) {
  Json json = Json::object();
  for (int match = 0; match < 5; ++match)
    json[matchKindName(MatchKind(match))] = found[match];
  return json;
}

Json kernelsOf(int32_t count) {
  Json list = Json::array();
  for (int32_t index = 0; index < count; ++index) {
    heddle_kernel_stats kernel = {};
    kernel.struct_size = sizeof(kernel);
    if (heddle_stats_kernel(index, &kernel) == HEDDLE_OK)
      list.push_back({{"kernel", kernel.kernel},
                      {"pattern", kernel.pattern},
                      {"kind", kernel.kind},
                      {"device", kernel.device},
                      {"bus", kernel.bus},
                      {"launches", kernel.launches},
                      {"pairs", kernel.pairs},
                      {"found", foundOf(kernel.found)}});
  }
  return list;
}

Json refusalsOf(const heddle_stats &now) {
  Json json = Json::object();
  for (int code = 1; code < 10; ++code)
    json[statusCodeName(StatusCode(code))] = now.refusals[code];
  return json;
}

} // namespace

Json processStats() {
  heddle_stats now = {};
  now.struct_size = sizeof(now);
  if (heddle_stats_get(&now) != HEDDLE_OK)
    return {};
  return {{"launches", now.launches},
          {"found", foundOf(now.found)},
          {"compilations", now.compilations},
          {"compilation_seconds", now.compilation_seconds},
          {"searches", now.searches},
          {"search_seconds", now.search_seconds},
          {"store_waits", now.store_waits},
          {"store_wait_seconds", now.store_wait_seconds},
          {"store_retries", now.store_retries},
          {"workspace_bytes", now.workspace_bytes},
          {"workspace_peak_bytes", now.workspace_peak_bytes},
          {"refusals", refusalsOf(now)},
          {"by_kernel", kernelsOf(now.kernels)}};
}

} // namespace heddle::cli
