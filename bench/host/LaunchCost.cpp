//===- LaunchCost.cpp - microseconds of the host for one launch -------------===//
// Owns the comparison of launches through the C interface with bare launches of an empty kernel. Batches are shorter
// than the driver's queue, so that no launch waits for the GPU; between batches everything is waited for. Batches of
// all kinds take turns.
#include "Scene.h"

#include <functional>

namespace hostcost {
namespace {

constexpr int64_t kRows = 16; // few, so that the GPU is not far behind

struct Kind {
  const char *name;
  std::function<Status()> once;
  std::vector<double> times;
};

// The default stream does not wait for `own`, nor own for it.
Status timeBatch(const Scene &scene, const DeviceStream &own, Kind &kind) {
  const Clock::time_point begin = Clock::now();
  for (int64_t i = 0; i < scene.options.launches; ++i)
    HEDDLE_TRY(kind.once());
  kind.times.push_back(microsecondsSince(begin) / double(scene.options.launches));
  HEDDLE_TRY(scene.device.synchronize(own.handle()));
  return scene.device.synchronize();
}

Status said(heddle_status status) { return status == HEDDLE_OK ? Status() : hostcost::said(api::Status::of(status)); }

Status findAndClose(const Scene &scene, const heddle_kernel_query &query) {
  heddle_kernel *kernel = nullptr;
  HEDDLE_TRY(said(heddle_kernel_find(scene.store.get(), scene.gpu.get(), &query, &kernel)));
  heddle_kernel_close(kernel);
  return {};
}

Status prepareAndClose(const Scene &scene, const heddle_attention_args &args) {
  heddle_prepared *prepared = nullptr;
  HEDDLE_TRY(said(heddle_prepare(scene.kernel.get(), &args, &prepared)));
  heddle_prepared_close(prepared);
  return {};
}

} // namespace

Result<Json> measureLaunches(Scene &scene, double &preparedUs) {
  HEDDLE_ASSIGN(Tensors tensors, Tensors::allocate(scene, kRows, false));
  HEDDLE_ASSIGN(const Call call, Call::prepare(scene, tensors.arguments(kRows)));
  HEDDLE_ASSIGN(const EmptyKernel empty, EmptyKernel::load(scene.device, 0));
  HEDDLE_ASSIGN(const EmptyKernel wide, EmptyKernel::load(scene.device, 2048));
  HEDDLE_ASSIGN(const DeviceStream own, DeviceStream::create(scene.device));
  void *const stream = own.handle();
  api::Arguments arguments = tensors.arguments(kRows);
  arguments.workspace = call.workspace.data();
  arguments.workspace_bytes = uint64_t(call.workspace.bytes());
  const heddle_attention_args args = arguments.c();
  api::Arguments kernelByKernel = arguments;
  kernelByKernel.flags = HEDDLE_WITHOUT_GRAPH;
  HEDDLE_ASSIGN(const api::Prepared plain, said(scene.kernel.prepare(kernelByKernel)));
  const api::Query query = queryOf(scene.options, kRows);
  std::vector<Kind> kinds = {
      {"empty", [&] { return empty.launch(own.handle()); }, {}},
      {"empty_with_2048_bytes", [&] { return wide.launch(own.handle()); }, {}},
      {"prepared", [&] { return said(heddle_prepared_launch(call.prepared.get(), stream)); }, {}},
      {"prepared_without_graph", [&] { return said(heddle_prepared_launch(plain.get(), stream)); }, {}},
      {"kernel_launch", [&] { return said(heddle_kernel_launch(scene.kernel.get(), stream, &args)); }, {}},
      {"empty_default_stream", [&] { return empty.launch(nullptr); }, {}},
      {"prepared_default_stream", [&] { return said(heddle_prepared_launch(call.prepared.get(), nullptr)); }, {}},
      {"find_again", [&] { return findAndClose(scene, query); }, {}},
      {"prepare", [&] { return prepareAndClose(scene, args); }, {}},
      {"prepare_without_graph", [&] { return prepareAndClose(scene, kernelByKernel.c()); }, {}}};
  for (int64_t round = 0; round <= scene.options.rounds; ++round)
    for (Kind &kind : kinds) {
      HEDDLE_TRY(timeBatch(scene, own, kind));
      if (round == 0)
        kind.times.clear(); // the first batch warms up
    }
  Json report;
  for (const Kind &kind : kinds)
    report.add(kind.name, median(kind.times));
  preparedUs = median(kinds[2].times);
  report.add("workspace_bytes", call.workspace.bytes());
  HEDDLE_ASSIGN(const bool isRight, tensors.isOne(kRows, 0));
  return isRight ? Result<Json>(report) : Result<Json>(Status::internal("launches: out is not 1 where v is"));
}

} // namespace hostcost
