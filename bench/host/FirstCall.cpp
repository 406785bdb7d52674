//===- FirstCall.cpp - from nothing to the first result ---------------------===//
// Owns the time of the first call of a process: what every program with a GPU pays (driver, context, one empty launch),
// and what heddle adds to it with a warm database.
#include "Scene.h"

#include "runtime/Device/DeviceState.h"

namespace hostcost {
namespace {

// Notes what has passed since the step before.
class Steps {
public:
  explicit Steps(Json &report) : report(report) {}
  double done(const char *name) {
    const double ms = microsecondsSince(begin) / 1000;
    report.add(name, ms);
    begin = Clock::now();
    return ms;
  }
  void restart() { begin = Clock::now(); }

private:
  Json &report;
  Clock::time_point begin = Clock::now();
};

Status makeContextCurrent(const Driver &driver) {
  heddle::cuda::Context context = nullptr;
  HEDDLE_TRY(driver.check(driver.primaryCtxRetain(&context, 0), "context", "cuDevicePrimaryCtxRetain"));
  return driver.check(driver.ctxPushCurrent(context), "context", "cuCtxPushCurrent");
}

} // namespace

Result<Scene> openScene(const Options &options, FirstCall &first) {
  constexpr int64_t kRows = 256;
  Json &report = first.report;
  Steps steps(report);
  HEDDLE_ASSIGN(const Driver *driver, Driver::open());
  steps.done("driver_init");
  HEDDLE_TRY(makeContextCurrent(*driver));
  steps.done("context");
  HEDDLE_ASSIGN(Device device, Device::open(0)); // not counted: the handle below opens the same
  steps.restart();
  HEDDLE_ASSIGN(const EmptyKernel empty, EmptyKernel::load(device, 0));
  HEDDLE_TRY(empty.launch(nullptr));
  HEDDLE_TRY(device.synchronize());
  steps.done("empty_launch");

  HEDDLE_ASSIGN(api::Device gpu, said(api::Device::open(0)));
  first.beyondMs += steps.done("device_open");
  HEDDLE_ASSIGN(api::Store store, said(api::Store::open(options.database)));
  first.beyondMs += steps.done("store_open");
  HEDDLE_ASSIGN(api::Kernel kernel, said(api::Kernel::find(store, gpu, queryOf(options, kRows))));
  first.beyondMs += steps.done("find_and_load");
  Scene scene{options, device, std::move(gpu), std::move(store), std::move(kernel)};
  HEDDLE_ASSIGN(Tensors tensors, Tensors::allocate(scene, kRows, false));
  steps.restart();
  HEDDLE_ASSIGN(const Call call, Call::prepare(scene, tensors.arguments(kRows)));
  first.beyondMs += steps.done("prepare");
  HEDDLE_TRY(said(call.prepared.launch()));
  HEDDLE_TRY(scene.device.synchronize());
  first.beyondMs += steps.done("launch_and_wait");
  report.add("beyond", first.beyondMs);
  HEDDLE_ASSIGN(const bool isRight, tensors.isOne(kRows, 0));
  if (!isRight)
    return Status::internal("first call: out is not 1 where v is");
  return scene;
}

} // namespace hostcost
