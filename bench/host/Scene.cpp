//===- Scene.cpp - tensors, calls, and numbers as text ----------------------===//
#include "Scene.h"

#include "runtime/Device/DeviceState.h"

#include <algorithm>
#include <cstdio>
#include <random>

namespace hostcost {

double microsecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Status said(const api::Status &status) {
  return status.isOk() ? Status() : Status(heddle::StatusCode(status.code()), status.message());
}

Json &Json::raw(const char *name, const std::string &value) {
  text += (text.empty() ? "\"" : ", \"") + std::string(name) + "\": " + value;
  return *this;
}
Json &Json::add(const char *name, double value) {
  char number[32];
  std::snprintf(number, sizeof number, "%.3f", value);
  return raw(name, number);
}
Json &Json::add(const char *name, int64_t value) { return raw(name, std::to_string(value)); }
Json &Json::add(const char *name, const std::string &value) { return raw(name, "\"" + value + "\""); }
Json &Json::add(const char *name, bool value) { return raw(name, value ? "true" : "false"); }
Json &Json::add(const char *name, const Json &object) { return raw(name, object.str()); }

api::Query queryOf(const Options &options, int64_t rows) {
  api::Query query(options.pattern.c_str());
  query.dtype = HEDDLE_BF16;
  query.head_dim = query.value_dim = options.headDim;
  query.batch = 1, query.heads = query.kv_heads = options.heads, query.seqlen_q = rows;
  return query;
}

namespace {

constexpr uint16_t kOne = 0x3f80;     // of bf16
constexpr uint32_t kNaN = 0x7fff7fff; // two of them, or one float

int64_t roundUp(int64_t bytes) { return (bytes + 255) / 256 * 256; }

// Either sign, magnitudes 0.5 to 2. In pieces: a million tokens would take long to draw.
Status fillRandom(DeviceBuffer &buffer, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint16_t> piece(size_t(std::min<int64_t>(buffer.bytes() / 2, int64_t(1) << 20)));
  for (uint16_t &element : piece)
    element = uint16_t((random() & 1) << 15 | 0x3f00 | (random() & 0xff));
  for (int64_t offset = 0; offset < buffer.bytes(); offset += int64_t(piece.size()) * 2)
    HEDDLE_TRY(
        buffer.copyFrom(piece.data(), std::min<int64_t>(int64_t(piece.size()) * 2, buffer.bytes() - offset), offset));
  return {};
}

Status fillWords(DeviceBuffer &buffer, uint32_t value) {
  const std::vector<uint32_t> words(size_t(buffer.bytes() / 4), value);
  return buffer.copyFrom(words.data(), buffer.bytes());
}

} // namespace

Result<Tensors> Tensors::allocate(const Scene &scene, int64_t rows, bool isRandom, int64_t outputs) {
  const int64_t elements = rows * scene.options.heads * scene.options.headDim;
  Tensors made(scene);
  made.outBytes = roundUp(elements * 2);
  made.lseBytes = roundUp(rows * scene.options.heads * 4);
  uint32_t seed = 1;
  for (DeviceBuffer *buffer : {&made.q, &made.k, &made.v}) {
    HEDDLE_ASSIGN(*buffer, DeviceBuffer::allocate(scene.device, roundUp(elements * 2)));
    HEDDLE_TRY(fillRandom(*buffer, seed++));
  }
  if (!isRandom)
    HEDDLE_TRY(fillWords(made.v, kOne << 16 | kOne));
  HEDDLE_ASSIGN(made.out, DeviceBuffer::allocate(scene.device, made.outBytes * outputs));
  HEDDLE_ASSIGN(made.lse, DeviceBuffer::allocate(scene.device, made.lseBytes * outputs));
  HEDDLE_TRY(made.poison());
  return made;
}

api::Arguments Tensors::arguments(int64_t rows, int64_t output) const {
  auto tensor = [&](void *address) {
    return api::contiguous(address, HEDDLE_BF16, {1, rows, options->heads, options->headDim});
  };
  api::Arguments arguments;
  arguments.q = tensor(q.data()), arguments.k = tensor(k.data()), arguments.v = tensor(v.data());
  arguments.out = tensor(static_cast<char *>(out.data()) + output * outBytes);
  arguments.lse = reinterpret_cast<float *>(static_cast<char *>(lse.data()) + output * lseBytes);
  for (size_t id = 0; id < options->sizes.size(); ++id)
    arguments.size(int32_t(id), options->sizes[id]);
  return arguments;
}

Status Tensors::poison() {
  HEDDLE_TRY(fillWords(out, kNaN));
  HEDDLE_TRY(fillWords(lse, kNaN));
  return device->synchronize();
}

Result<std::vector<uint16_t>> Tensors::read(int64_t rows, int64_t output, heddle::cuda::Stream stream) const {
  std::vector<uint16_t> elements(size_t(rows * options->heads * options->headDim));
  HEDDLE_TRY(out.copyTo(elements.data(), int64_t(elements.size()) * 2, output * outBytes, stream));
  HEDDLE_TRY(device->synchronize(stream));
  return elements;
}

Result<bool> Tensors::isOne(int64_t rows, int64_t output) const {
  HEDDLE_ASSIGN(const std::vector<uint16_t> elements, read(rows, output, nullptr));
  return std::all_of(elements.begin(), elements.end(), [](uint16_t element) { return element == kOne; });
}

Result<Call> Call::prepare(const Scene &scene, api::Arguments arguments) {
  HEDDLE_ASSIGN(const uint64_t bytes, said(scene.kernel.workspaceBytes(arguments)));
  HEDDLE_ASSIGN(DeviceBuffer workspace, DeviceBuffer::allocate(scene.device, int64_t(bytes)));
  arguments.workspace = workspace.data();
  arguments.workspace_bytes = bytes;
  HEDDLE_ASSIGN(api::Prepared prepared, said(scene.kernel.prepare(arguments)));
  return Call{std::move(workspace), std::move(prepared)};
}

Result<EmptyKernel> EmptyKernel::load(const Device &device, int64_t parameterBytes) {
  const std::string parameter = ".param .align 64 .b8 p[" + std::to_string(parameterBytes) + "]";
  const std::string text = "// nothing\n.version 7.0\n.target sm_80\n.address_size 64\n.visible .entry heddle_kernel(" +
                           (parameterBytes > 0 ? parameter : "") + ") { ret; }\n";
  EmptyKernel made;
  made.driver = device.state()->driver;
  heddle::cuda::Module module = nullptr; // until the end of the process
  HEDDLE_TRY(made.driver->check(made.driver->moduleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr),
                                "empty kernel", "cuModuleLoadDataEx"));
  HEDDLE_TRY(made.driver->check(made.driver->moduleGetFunction(&made.function, module, "heddle_kernel"), "empty kernel",
                                "cuModuleGetFunction"));
  return made;
}

Status EmptyKernel::launch(heddle::cuda::Stream stream) const {
  alignas(64) static unsigned char block[4096];
  void *parameters[] = {block};
  return driver->check(driver->launchKernel(function, 1, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr),
                       "empty kernel", "cuLaunchKernel");
}

} // namespace hostcost
