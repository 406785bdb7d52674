//===- Scene.h - what the measurements share --------------------------------===//
// Owns the GPU, the kernel under measurement and device memory for its calls. Kernels are found and launched through
// the C interface; memory, streams and the bare launches beside them through the driver layer.
#ifndef HEDDLE_BENCH_HOST_SCENE_H
#define HEDDLE_BENCH_HOST_SCENE_H

#include "runtime/Core/Status.h"
#include "runtime/Device/Device.h"
#include "runtime/Device/Driver.h"
#include "runtime/Include/heddle.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace hostcost {

using heddle::Device;
using heddle::DeviceBuffer;
using heddle::DeviceStream;
using heddle::Driver;
using heddle::Result;
using heddle::Status;
namespace api = heddle::api;

struct Options {
  std::string database, pattern = "sliding_window";
  std::vector<int64_t> sizes;      // run-time sizes of the pattern, in their order
  int64_t headDim = 64, heads = 8; // of bf16 tensors
  int64_t launches = 200, rounds = 51;
  int64_t sample = 0; // one launch in so many is timed on the GPU meanwhile; 0: none
  int64_t lengths = 10000, threads = 32, launchesOfEach = 1000, streams = 8, graphLaunches = 100,
          memoryTokens = 1 << 20;
  double preparedLimitUs = 0, firstLimitMs = 0; // 0: none
};

using Clock = std::chrono::steady_clock;
double microsecondsSince(Clock::time_point begin);
double median(std::vector<double> values);

// What the C interface says, in the words of the C++ layers.
Status said(const api::Status &status);
template <class T> Result<T> said(api::Result<T> result) {
  return result ? Result<T>(std::move(*result)) : Result<T>(said(result.status()));
}

// One JSON object, in the order of the calls.
class Json {
public:
  Json &add(const char *name, double value);
  Json &add(const char *name, int64_t value);
  Json &add(const char *name, const std::string &value);
  Json &add(const char *name, bool value);
  Json &add(const char *name, const Json &object);
  std::string str() const { return "{" + text + "}"; }

private:
  Json &raw(const char *name, const std::string &value);
  std::string text;
};

struct Scene {
  Options options;
  Device device; // its context is current on the thread that made the scene
  api::Device gpu;
  api::Store store;
  api::Kernel kernel;
};

api::Query queryOf(const Options &options, int64_t rows);

// Inputs of at most so many rows of one batch, and results of several calls.
class Tensors {
public:
  // v is random, or 1: then every row of out must be 1, whatever the pattern keeps.
  static Result<Tensors> allocate(const Scene &scene, int64_t rows, bool isRandom, int64_t outputs = 1);
  // Rows 0 to `rows`, into one of the outputs.
  api::Arguments arguments(int64_t rows, int64_t output = 0) const;
  // NaN, so that what a launch leaves out shows. Done when it returns.
  Status poison();
  // After all work on the stream.
  Result<std::vector<uint16_t>> read(int64_t rows, int64_t output, heddle::cuda::Stream stream) const;
  // Whether the output is 1 everywhere.
  Result<bool> isOne(int64_t rows, int64_t output) const;

private:
  explicit Tensors(const Scene &scene) : options(&scene.options), device(&scene.device) {}
  const Options *options;
  const Device *device;
  int64_t outBytes = 0, lseBytes = 0; // from one output to the next
  DeviceBuffer q, k, v, out, lse;
};

// A prepared call with the workspace that it asked for.
struct Call {
  DeviceBuffer workspace;
  api::Prepared prepared;
  static Result<Call> prepare(const Scene &scene, api::Arguments arguments);
};

// The parts, each one object of the report. What is wrong is a failure; what is slow is in the numbers.
Result<Json> measureLaunches(Scene &scene, double &preparedUs);
Result<Json> tryLengths(Scene &scene);
Result<Json> tryThreads(Scene &scene);
Result<Json> tryGraph(Scene &scene);
Result<Json> measureMemory(Scene &scene);
Result<Json> tryForeign(Scene &scene);

// Opens everything, with the time of each step; what heddle adds to a bare launch is in `beyondMs`.
struct FirstCall {
  Json report;
  double beyondMs = 0;
};
Result<Scene> openScene(const Options &options, FirstCall &first);

// A kernel that does nothing, with parameters of so many bytes, from PTX through the driver.
class EmptyKernel {
public:
  static Result<EmptyKernel> load(const Device &device, int64_t parameterBytes);
  Status launch(heddle::cuda::Stream stream) const;

private:
  const Driver *driver = nullptr;
  heddle::cuda::Function function = nullptr;
};

} // namespace hostcost

#endif
