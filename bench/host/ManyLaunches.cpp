//===- ManyLaunches.cpp - many lengths, many threads, many tokens -----------===//
#include "Scene.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <thread>

namespace hostcost {

// Lengths 1, 2, 3, ... through one kernel; of every hundredth the result is looked at.
Result<Json> tryLengths(Scene &scene) {
  const int64_t lengths = scene.options.lengths;
  HEDDLE_ASSIGN(Tensors tensors, Tensors::allocate(scene, lengths, false));
  HEDDLE_ASSIGN(const uint64_t bytes, said(scene.kernel.workspaceBytes(tensors.arguments(lengths))));
  HEDDLE_ASSIGN(const DeviceBuffer workspace, DeviceBuffer::allocate(scene.device, int64_t(bytes)));
  HEDDLE_ASSIGN(const int64_t freeBefore, scene.device.freeBytes());
  std::set<std::string> kernels;
  int64_t checked = 0;
  const Clock::time_point begin = Clock::now();
  for (int64_t rows = 1; rows <= lengths; ++rows) {
    api::Arguments arguments = tensors.arguments(rows);
    arguments.workspace = workspace.data();
    arguments.workspace_bytes = bytes;
    HEDDLE_TRY(said(scene.kernel.launch(arguments)));
    kernels.insert(scene.kernel.info().content_key);
    if (rows % 100 != 0)
      continue;
    HEDDLE_ASSIGN(const bool isRight, tensors.isOne(rows, 0));
    if (!isRight)
      return Status::internal("lengths: out of " + std::to_string(rows) + " rows is not 1 where v is");
    ++checked;
  }
  HEDDLE_TRY(scene.device.synchronize());
  HEDDLE_ASSIGN(const int64_t freeAfter, scene.device.freeBytes());
  return Json()
      .add("different", lengths)
      .add("kernels", int64_t(kernels.size()))
      .add("checked", checked)
      .add("seconds", microsecondsSince(begin) / 1e6)
      .add("device_bytes", freeBefore - freeAfter);
}

namespace {

constexpr int64_t kLongest = 32, kSlots = 10; // rows; results that a thread has before it looks at them

struct ThreadScene {
  Scene &scene;
  std::vector<std::vector<uint16_t>> expected; // of length i + 1
  std::atomic<int64_t> wrong{0}, launched{0};
};

Result<std::vector<Call>> prepareAll(const Scene &scene, const Tensors &tensors) {
  std::vector<Call> calls;
  for (int64_t slot = 0; slot < kSlots; ++slot)
    for (int64_t rows = 1; rows <= kLongest; ++rows) {
      HEDDLE_ASSIGN(Call call, Call::prepare(scene, tensors.arguments(rows, slot)));
      calls.push_back(std::move(call));
    }
  return calls;
}

Status runThread(ThreadScene &shared, int64_t thread, heddle::cuda::Stream stream) {
  Scene &scene = shared.scene;
  HEDDLE_ASSIGN(Tensors tensors, Tensors::allocate(scene, kLongest, true, kSlots));
  HEDDLE_ASSIGN(const std::vector<Call> calls, prepareAll(scene, tensors));
  auto lengthOf = [&](int64_t i) { return 1 + (thread * 7 + i * 11) % kLongest; };
  for (int64_t first = 0; first < scene.options.launchesOfEach; first += kSlots) {
    const int64_t slots = std::min(kSlots, scene.options.launchesOfEach - first);
    for (int64_t slot = 0; slot < slots; ++slot)
      HEDDLE_TRY(said(calls[slot * kLongest + lengthOf(first + slot) - 1].prepared.launch(stream)));
    shared.launched += slots;
    for (int64_t slot = 0; slot < slots; ++slot) {
      const int64_t rows = lengthOf(first + slot);
      HEDDLE_ASSIGN(const std::vector<uint16_t> result, tensors.read(rows, slot, stream));
      shared.wrong += result != shared.expected[rows - 1];
    }
  }
  return {};
}

Status makeExpected(ThreadScene &shared) {
  HEDDLE_ASSIGN(Tensors tensors, Tensors::allocate(shared.scene, kLongest, true));
  for (int64_t rows = 1; rows <= kLongest; ++rows) {
    HEDDLE_ASSIGN(const Call call, Call::prepare(shared.scene, tensors.arguments(rows)));
    HEDDLE_TRY(said(call.prepared.launch()));
    HEDDLE_ASSIGN(std::vector<uint16_t> result, tensors.read(rows, 0, nullptr));
    shared.expected.push_back(std::move(result));
  }
  return {};
}

} // namespace

// Every thread has results of its own; which of them a launch writes differs from launch to launch.
Result<Json> tryThreads(Scene &scene) {
  ThreadScene shared{scene, {}};
  HEDDLE_TRY(makeExpected(shared));
  std::vector<DeviceStream> streams;
  for (int64_t i = 0; i < scene.options.streams; ++i) {
    HEDDLE_ASSIGN(DeviceStream stream, DeviceStream::create(scene.device));
    streams.push_back(std::move(stream));
  }
  std::vector<Status> outcomes(size_t(scene.options.threads));
  std::vector<std::thread> threads;
  const Clock::time_point begin = Clock::now();
  for (size_t i = 0; i < outcomes.size(); ++i)
    threads.emplace_back([&, i] { outcomes[i] = runThread(shared, int64_t(i), streams[i % streams.size()].handle()); });
  for (std::thread &thread : threads)
    thread.join();
  const double seconds = microsecondsSince(begin) / 1e6;
  for (const Status &outcome : outcomes)
    HEDDLE_TRY(outcome);
  if (shared.wrong > 0)
    return Status::internal("threads: " + std::to_string(shared.wrong) + " results differ from those of one thread");
  return Json()
      .add("threads", scene.options.threads)
      .add("streams", scene.options.streams)
      .add("launches", shared.launched.load())
      .add("differing", shared.wrong.load())
      .add("seconds", seconds);
}

namespace {

// Bytes that are gone at the worst moment of a launch.
Result<int64_t> takenByLaunch(const Scene &scene, const api::Prepared &prepared, int64_t before) {
  HEDDLE_TRY(said(prepared.launch()));
  int64_t taken = 0;
  for (bool isDone : {false, true}) {
    if (isDone)
      HEDDLE_TRY(scene.device.synchronize());
    HEDDLE_ASSIGN(const int64_t now, scene.device.freeBytes());
    taken = std::max(taken, before - now);
  }
  return taken;
}

} // namespace

// Free memory of the GPU around preparing and launching one call of a loaded kernel, and then as many as may be graphs;
// other processes on it would show here, and graphs of before would hide what these take.
Result<Json> measureMemory(Scene &scene) {
  constexpr int kManyCalls = 64;
  const int64_t tokens = scene.options.memoryTokens;
  HEDDLE_ASSIGN(Tensors tensors, Tensors::allocate(scene, tokens, false));
  api::Arguments arguments = tensors.arguments(tokens);
  HEDDLE_ASSIGN(arguments.workspace_bytes, said(scene.kernel.workspaceBytes(arguments)));
  HEDDLE_ASSIGN(const DeviceBuffer workspace, DeviceBuffer::allocate(scene.device, int64_t(arguments.workspace_bytes)));
  arguments.workspace = workspace.data();
  HEDDLE_TRY(scene.device.synchronize());
  HEDDLE_ASSIGN(const int64_t before, scene.device.freeBytes());
  std::vector<api::Prepared> calls;
  int64_t beyond = 0, beyondOfMany = 0;
  for (int i = 0; i < kManyCalls; ++i) {
    HEDDLE_ASSIGN(api::Prepared call, said(scene.kernel.prepare(arguments)));
    calls.push_back(std::move(call));
    HEDDLE_ASSIGN(const int64_t taken, takenByLaunch(scene, calls.back(), before));
    beyondOfMany = std::max(beyondOfMany, taken);
    if (i == 0)
      beyond = taken;
  }
  HEDDLE_ASSIGN(const bool isRight, tensors.isOne(tokens, 0));
  if (!isRight)
    return Status::internal("memory: out is not 1 where v is");
  return Json()
      .add("tokens", tokens)
      .add("workspace_bytes", workspace.bytes())
      .add("beyond_bytes", beyond)
      .add("beyond_bytes_of_64_calls", beyondOfMany);
}

} // namespace hostcost
