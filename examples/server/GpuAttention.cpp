//===- GpuAttention.cpp - attention on a GPU --------------------------------===//
// The cache is device memory of bf16. The rest of the model runs on the host, so a step's rows of q, k and v travel to the
// GPU and its results back, for each layer; the cache stays. Tables and lengths travel once a step.
//===----------------------------------------------------------------------===//
#include "Attention.h"

#include "driver.h"

#include <cstring>
#include <thread>
#include <utility>

namespace server {
namespace {

api::Status said(const char *what, driver_code code) {
  return code == 0 ? api::Status()
                   : api::Status(HEDDLE_INTERNAL, std::string(what) + ": the driver says " + std::to_string(code));
}

uint16_t toBf16(float value) { // to the nearest, ties to even; values are finite
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float fromBf16(uint16_t value) {
  const uint32_t bits = uint32_t(value) << 16;
  float wide = 0;
  std::memcpy(&wide, &bits, sizeof(wide));
  return wide;
}

// Device memory that grows.
class Memory {
public:
  explicit Memory(const driver &cuda) : cuda(cuda) {}
  Memory(const Memory &) = delete;
  ~Memory() {
    if (address)
      cuda.release(address);
  }
  api::Status reserve(uint64_t bytes) {
    if (bytes <= held)
      return {};
    if (address)
      cuda.release(std::exchange(address, 0));
    held = 0;
    const api::Status status = said("allocate", cuda.allocate(&address, bytes));
    held = status ? bytes : 0;
    return status;
  }
  template <class T> api::Status fill(const std::vector<T> &values) {
    if (api::Status status = reserve(values.size() * sizeof(T)); !status)
      return status;
    return said("copy", cuda.to_device(address, values.data(), values.size() * sizeof(T), nullptr));
  }
  driver_pointer get() const { return address; }
  template <class T> T *as() const { return reinterpret_cast<T *>(static_cast<uintptr_t>(address)); }
  uint64_t bytes() const { return held; }

private:
  const driver &cuda;
  driver_pointer address = 0;
  uint64_t held = 0;
};

class GpuAttention : public Attention {
public:
  GpuAttention(const AttentionShape &shape, const driver &cuda, void *context, api::Kernel kernel)
      : cuda(cuda), context(context), shape(shape), kernel(std::move(kernel)) {}

  // Unkept keys must be finite, so the cache begins with zeros.
  api::Status open() {
    if (api::Status status = enter(); !status)
      return status;
    const std::vector<uint16_t> zeros(size_t(shape.pages * pageElements() * 2), 0);
    if (api::Status status = cache.reserve(uint64_t(shape.layers) * zeros.size() * sizeof(uint16_t)); !status)
      return status;
    for (int64_t layer = 0; layer < shape.layers; ++layer)
      if (api::Status status = said("copy", cuda.to_device(layerAt(layer), zeros.data(), zeros.size() * 2, nullptr));
          !status)
        return status;
    return said("wait", cuda.synchronize(nullptr));
  }

  api::Status begin(const Batch &step) override {
    batch = &step;
    if (api::Status status = enter(); !status)
      return status;
    if (api::Status status = offsets.fill(step.offsets); !status)
      return status;
    if (api::Status status = lengths.fill(step.lengths); !status)
      return status;
    return table.fill(step.table);
  }

  api::Status run(int64_t layer, const float *qkv, float *out) override {
    if (api::Status status = upload(layer, qkv); !status)
      return status;
    if (api::Status status = launch(layer); !status)
      return status;
    return download(out);
  }

  std::string where() const override {
    return std::string("a GPU, bf16, kernel ") + std::string(kernel.info().content_key).substr(0, 12);
  }

private:
  // Copies and allocations want the context on the thread that asks; launches find theirs themselves.
  api::Status enter() {
    if (thread == std::this_thread::get_id())
      return {};
    thread = std::this_thread::get_id();
    return said("context", cuda.push_context(context));
  }

  int64_t tokenElements() const { return shape.kvHeads * shape.headDim; }
  int64_t pageElements() const { return shape.pageSize * tokenElements(); }
  driver_pointer layerAt(int64_t layer) const {
    return cache.get() + uint64_t(layer * shape.pages * pageElements() * 2) * sizeof(uint16_t);
  }

  // q in one piece; k and v in pieces that lie in one page.
  api::Status upload(int64_t layer, const float *qkv) {
    const int64_t rows = batch->rows(), token = tokenElements();
    packed[0].resize(size_t(rows * shape.outSize()));
    packed[1].resize(size_t(rows * token)), packed[2].resize(size_t(rows * token));
    for (int64_t row = 0; row < rows; ++row) {
      const float *from = qkv + row * shape.rowSize();
      for (size_t part = 0; part < 3; ++part) {
        const int64_t count = part == 0 ? shape.outSize() : token;
        for (int64_t i = 0; i < count; ++i)
          packed[part][size_t(row * count + i)] = toBf16(*from++);
      }
    }
    if (api::Status status = q.fill(packed[0]); !status)
      return status;
    for (int64_t first = 0, last = 0; first < rows; first = last) {
      for (last = first + 1; last < rows && follows(last);)
        ++last;
      if (api::Status status = append(layer, first, last); !status)
        return status;
    }
    return {};
  }

  // Whether the row lies behind the one before it, in the same page.
  bool follows(int64_t row) const {
    const int32_t place = batch->places[size_t(row)];
    return place == batch->places[size_t(row - 1)] + 1 && place % shape.pageSize != 0;
  }

  api::Status append(int64_t layer, int64_t first, int64_t last) {
    const int64_t place = batch->places[size_t(first)], token = tokenElements();
    const int64_t to = place / shape.pageSize * pageElements() * 2 + place % shape.pageSize * token;
    const size_t bytes = size_t((last - first) * token) * sizeof(uint16_t);
    for (int part = 1; part <= 2; ++part)
      if (driver_code code =
              cuda.to_device(layerAt(layer) + uint64_t(to + (part - 1) * pageElements()) * sizeof(uint16_t),
                             &packed[part][size_t(first * token)], bytes, nullptr))
        return said("copy", code);
    return {};
  }

  api::Status launch(int64_t layer) {
    const int64_t rows = batch->rows(), heads = shape.heads, dim = shape.headDim;
    if (api::Status status = results.reserve(uint64_t(rows * shape.outSize()) * sizeof(uint16_t)); !status)
      return status;
    if (api::Status status = lse.reserve(uint64_t(rows * heads) * sizeof(float)); !status)
      return status;
    api::Arguments arguments;
    arguments.q = api::contiguous(q.as<void>(), HEDDLE_BF16, {1, rows, heads, dim});
    arguments.k = inPages(layerAt(layer)), arguments.v = inPages(layerAt(layer) + uint64_t(pageElements()) * 2);
    arguments.out = api::contiguous(results.as<void>(), HEDDLE_BF16, {1, rows, heads, dim});
    arguments.lse = lse.as<float>();
    arguments.page_table = table.as<int32_t>(), arguments.seqused_k = lengths.as<int32_t>();
    arguments.cu_seqlens_q = offsets.as<int32_t>();
    arguments.page_size = int32_t(shape.pageSize);
    arguments.sequences = batch->sequences(), arguments.max_pages = batch->maxPages;
    setReach(arguments, shape.reach);
    api::Result<uint64_t> bytes = kernel.workspaceBytes(arguments);
    if (!bytes)
      return bytes.status();
    if (api::Status status = workspace.reserve(*bytes); !status)
      return status;
    arguments.workspace = *bytes > 0 ? workspace.as<void>() : nullptr, arguments.workspace_bytes = *bytes;
    return kernel.launch(arguments);
  }

  heddle_tensor inPages(driver_pointer address) const {
    const int64_t page = pageElements() * 2, token = tokenElements(), dim = shape.headDim;
    void *const at = reinterpret_cast<void *>(static_cast<uintptr_t>(address));
    return {at, HEDDLE_BF16, 0, {shape.pages, shape.pageSize, shape.kvHeads, dim}, {page, token, dim, 1}};
  }

  api::Status download(float *out) {
    std::vector<uint16_t> &bits = packed[0];
    bits.resize(size_t(batch->rows() * shape.outSize()));
    if (driver_code code = cuda.to_host(bits.data(), results.get(), bits.size() * sizeof(uint16_t), nullptr))
      return said("copy", code);
    if (driver_code code = cuda.synchronize(nullptr))
      return said("wait", code);
    for (size_t i = 0; i < bits.size(); ++i)
      out[i] = fromBf16(bits[i]);
    return {};
  }

  const driver cuda;
  void *const context;
  std::thread::id thread; // that has entered it
  const AttentionShape shape;
  api::Kernel kernel;
  Memory cache{cuda}, q{cuda}, results{cuda}, lse{cuda}, workspace{cuda}, offsets{cuda}, lengths{cuda}, table{cuda};
  std::vector<uint16_t> packed[3]; // q, k and v of a step; then its results
  const Batch *batch = nullptr;
};

} // namespace

api::Result<std::unique_ptr<Attention>> attentionOnGpu(const AttentionShape &shape, const std::string &kernels) {
  api::Result<api::Store> store = api::Store::open(kernels);
  if (!store)
    return store.status();
  api::Result<api::Device> device = api::Device::open(0);
  if (!device)
    return device.status();
  driver cuda;
  void *context = nullptr;
  if (!driver_open(&cuda) || cuda.primary_context(&context, 0) != 0)
    return api::Status(HEDDLE_UNAVAILABLE, "no context on GPU 0");
  api::Query query("streaming");
  query.kind = "decode";
  query.dtype = HEDDLE_BF16;
  query.head_dim = query.value_dim = shape.headDim;
  query.batch = 8, query.heads = shape.heads, query.kv_heads = shape.kvHeads, query.seqlen_q = 1;
  api::Result<api::Kernel> kernel = api::Kernel::find(*store, *device, query);
  if (!kernel)
    return kernel.status();
  auto attention = std::make_unique<GpuAttention>(shape, cuda, context, std::move(*kernel));
  if (api::Status status = attention->open(); !status)
    return status;
  return std::unique_ptr<Attention>(std::move(attention));
}

} // namespace server
