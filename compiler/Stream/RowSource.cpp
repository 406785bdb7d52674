#include "compiler/Stream/RowSource.h"
#include "runtime/Core/ParallelFor.h"
#include "runtime/Core/Positions.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace heddle {
namespace {

/// The first failure of work on many threads.
class FirstFailure {
public:
  void add(Status status) {
    if (status.isOk())
      return;
    std::lock_guard<std::mutex> lock(mutex);
    if (first.isOk())
      first = std::move(status);
  }
  Status status() const { return first; }

private:
  std::mutex mutex;
  Status first;
};

} // namespace

int64_t RowSource::bytesOf(const RowBlock &block) const {
  return block.batches * block.rows.count * block.heads * dimOf(block.role) * dtypeBytes(dtype);
}

int64_t RowSource::elementOf(const RowBlock &block, int64_t batch, int64_t row) const {
  const RoleSpec &role = specOf(block.role);
  return ((batch * sizes.of(role.rows) + row) * headsOf(block.role) + block.firstHead) * dimOf(block.role);
}

//===-- files -----------------------------------------------------------------===//

Result<std::unique_ptr<RowSource>> FileRows::open(const std::string &path) {
  HEDDLE_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
  RoleTensors tensors;
  for (Role role : {Role::q, Role::k, Role::v}) {
    HEDDLE_ASSIGN(tensors.of(role), file.describe(specOf(role).name));
  }
  const Result<AttentionInputs> inputs = makeAttentionInputs(std::move(tensors));
  if (!inputs)
    return Status(inputs.status().code(), "tensor file '" + path + "': " + inputs.status().message());
  std::unique_ptr<FileRows> rows(new FileRows(std::move(file)));
  rows->sizes = inputs->sizes;
  rows->dtype = inputs->dtype();
  return std::unique_ptr<RowSource>(std::move(rows));
}

/// Stretches of the file are read whole where what lies between the rows is little, and taken apart in memory.
Status FileRows::read(const RowBlock &block, void *to) const {
  constexpr int64_t kStretchBytes = int64_t(4) << 20, kFarBytes = int64_t(16) << 10;
  const TensorEntry &entry = file.entries().at(specOf(block.role).name);
  const int64_t element = dtypeBytes(dtype), width = block.heads * dimOf(block.role) * element;
  const int64_t rowBytes = headsOf(block.role) * dimOf(block.role) * element, step = rowBytes * block.rows.rate;
  const int64_t perStretch = step > kFarBytes ? 1 : std::max<int64_t>(1, kStretchBytes / step);
  const int64_t stretches = (block.rows.count + perStretch - 1) / perStretch, items = stretches * block.batches;
  FirstFailure failure;
  parallelFor(items, threadCountFor(items, 0), [&](int, int64_t item) {
    const int64_t batch = item / stretches, first = item % stretches * perStretch,
                  count = std::min(perStretch, block.rows.count - first);
    char *out = static_cast<char *>(to) + (batch * block.rows.count + first) * width;
    const uint64_t begin =
        uint64_t(elementOf(block, block.firstBatch + batch, block.rows.first + first * block.rows.rate) * element);
    const uint64_t bytes = uint64_t((count - 1) * step + width);
    if (step == width || count == 1)
      return failure.add(file.readBytes(entry, begin, bytes, out));
    std::vector<char> stretch(bytes);
    failure.add(file.readBytes(entry, begin, bytes, stretch.data()));
    for (int64_t row = 0; row < count; ++row)
      std::memcpy(out + row * width, stretch.data() + row * step, size_t(width));
  });
  return failure.status();
}

//===-- random numbers --------------------------------------------------------===//

Result<std::unique_ptr<RandomRows>> RandomRows::create(const AttentionSizes &sizes, DType dtype, uint64_t seed) {
  RoleTensors tensors;
  for (Role role : {Role::q, Role::k, Role::v})
    tensors.of(role) = HostTensor{dtype, sizes.shapeOf(specOf(role)), {}};
  const Result<AttentionInputs> inputs = makeAttentionInputs(std::move(tensors));
  if (!inputs)
    return Status(inputs.status().code(), "random inputs: " + inputs.status().message());
  std::unique_ptr<RandomRows> rows(new RandomRows(seed));
  rows->sizes = sizes;
  rows->dtype = dtype;
  return rows;
}

Status RandomRows::read(const RowBlock &block, void *to) const {
  constexpr int64_t kItem = int64_t(1) << 18, kBatch = 2048;
  const RandomStream &stream = streamOf(block.role);
  const bool isWhole = block.rows.rate == 1 && block.heads == headsOf(block.role);
  const int64_t width = block.heads * dimOf(block.role);
  const int64_t runRows = isWhole ? block.rows.count : 1, run = runRows * width; // elements that follow each other
  const int64_t all = block.batches * block.rows.count * width, items = (all + kItem - 1) / kItem;
  parallelFor(items, threadCountFor(items, 0), [&](int, int64_t item) {
    float values[kBatch];
    for (int64_t at = item * kItem, end = std::min(all, at + kItem); at < end;) {
      const int64_t row = at / run * runRows, offset = at % run, count = std::min({run - offset, end - at, kBatch});
      const int64_t first = elementOf(block, block.firstBatch + row / block.rows.count,
                                      block.rows.first + row % block.rows.count * block.rows.rate);
      stream.normals(uint64_t(first + offset), int(count), values);
      storeElements(dtype, values, count, to, at);
      at += count;
    }
  });
  return {};
}

} // namespace heddle
