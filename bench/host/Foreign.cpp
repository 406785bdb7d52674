//===- Foreign.cpp - memory and streams that are not this GPU's -------------===//
// Owns what the C interface says of memory of the host, memory and streams of another GPU, as this driver knows them.
// Nothing is launched with such memory.
#include "Scene.h"

#include "runtime/Device/DeviceState.h"

#include <cstdlib>

namespace hostcost {
namespace {

// What preparing a call says whose k lies there: "ok", or the code.
std::string saidOf(const Scene &scene, const Tensors &tensors, void *address) {
  api::Arguments arguments = tensors.arguments(16);
  arguments.k.ptr = address;
  const Result<Call> call = Call::prepare(scene, std::move(arguments));
  return call ? "ok" : heddle::statusCodeName(call.status().code());
}

Status checkOtherGpu(const Scene &scene, const Tensors &tensors, Json &report) {
  HEDDLE_ASSIGN(const Device other, Device::open(1));
  HEDDLE_ASSIGN(const DeviceBuffer memory, DeviceBuffer::allocate(other, 1 << 20));
  HEDDLE_ASSIGN(const DeviceStream stream, DeviceStream::create(other));
  HEDDLE_ASSIGN(const Call call, Call::prepare(scene, tensors.arguments(16)));
  report.add("memory_of_gpu_1", saidOf(scene, tensors, memory.data()));
  const Status launched = said(call.prepared.launch(stream.handle()));
  report.add("stream_of_gpu_1", std::string(heddle::statusCodeName(launched.code())));
  return launched.code() == heddle::StatusCode::invalidArgument
             ? Status()
             : Status::internal("foreign: a launch on a stream of GPU 1 gave '" + launched.str() +
                                "', not invalidArgument");
}

} // namespace

Result<Json> tryForeign(Scene &scene) {
  HEDDLE_ASSIGN(const Tensors tensors, Tensors::allocate(scene, 16, false));
  void *host = std::aligned_alloc(4096, 1 << 20);
  Json report;
  report.add("host_memory", saidOf(scene, tensors, host));
  std::free(host);
  HEDDLE_ASSIGN(const int count, Device::count());
  if (count > 1)
    HEDDLE_TRY(checkOtherGpu(scene, tensors, report));
  return report;
}

} // namespace hostcost
