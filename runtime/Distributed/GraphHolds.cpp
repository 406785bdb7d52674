#include "runtime/Distributed/GraphHolds.h"

#include "runtime/Device/DeviceState.h"

namespace heddle {
namespace {

using SharedCount = std::shared_ptr<std::atomic<int>>;

// On a thread of the driver, which may not be called from there.
void release(void *held) {
  const std::unique_ptr<SharedCount> count(static_cast<SharedCount *>(held));
  --**count;
}

} // namespace

Status GraphHolds::add(const Device &device, cuda::Stream stream) {
  constexpr const char *kWhat = "capture a call over a group";
  const DeviceState &state = *device.state();
  const Driver &driver = *state.driver;
  if (!driver.streamGetCaptureInfo || !driver.userObjectCreate || !driver.graphRetainUserObject) {
    ++*count;
    return {};
  }
  ContextScope scope(state);
  HEDDLE_TRY(scope.status(kWhat));
  int capture = 0;
  uint64_t number = 0;
  cuda::Graph graph = nullptr;
  const cuda::GraphNode *nodes = nullptr;
  const void *edges = nullptr; // asked for, as it refuses to keep them to itself
  size_t nodeCount = 0;
  HEDDLE_TRY(driver.check(driver.streamGetCaptureInfo(stream, &capture, &number, &graph, &nodes, &edges, &nodeCount),
                          kWhat, "cuStreamGetCaptureInfo"));
  if (number == last && isHeld())
    return {};
  auto held = std::make_unique<SharedCount>(count);
  cuda::UserObject object = nullptr;
  HEDDLE_TRY(driver.check(driver.userObjectCreate(&object, held.get(), &release, 1, cuda::kUserObjectNoDestructorSync),
                          kWhat, "cuUserObjectCreate"));
  (void)held.release(); // the object's
  ++*count;
  last = number;
  return driver.check(driver.graphRetainUserObject(graph, object, 1, cuda::kGraphUserObjectMove), kWhat,
                      "cuGraphRetainUserObject");
}

} // namespace heddle
