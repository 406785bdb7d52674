// Each head of each tensor by itself, rotated or not, or each block of its rows of q and k: the largest finite magnitude becomes
// the largest number of e4m3. What kernels
// compute (codegen/Skeletons/Quantize), in the same operations, so that bits are the same; the mean of k aside, whose
// sum is one of doubles here.
#include "codegen/Cpu/CpuKinds.h"
#include "runtime/Core/ElementConvert.h"
#include "runtime/Core/ParallelFor.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace heddle {
namespace {

struct QuantizedRole {
  Role from, to, descale;
};
constexpr QuantizedRole kTensors[] = {{Role::q, Role::quantizedQ, Role::descaleQ},
                                      {Role::k, Role::quantizedK, Role::descaleK},
                                      {Role::v, Role::quantizedV, Role::descaleV}};

constexpr float kLeastDescale = 0x1p-126f; // whose reciprocal is finite
constexpr int64_t kMostTogether = 256;     // elements that are rotated together

// Each `together` neighbouring values, in the order of codegen/Skeletons/Quantize/quantize_rotation.cuh: sums and
// differences of two, whose places differ in one bit. Zeros become positive ones.
void rotate(const float *signs, int64_t together, std::vector<float> &values) {
  const int64_t count = int64_t(values.size());
  for (int64_t i = 0; i < count; ++i)
    values[i] *= signs[i];
  for (int64_t bit = 1; bit < together; bit *= 2)
    for (int64_t i = 0; i < count; ++i)
      if ((i & bit) == 0) {
        const float a = values[i], b = values[i + bit];
        values[i] = a + b, values[i + bit] = a - b;
      }
  const float factor = float(1 / std::sqrt(double(together)));
  for (float &value : values)
    value = value * factor + 0.0f;
}

class HeadsOfTensor {
public:
  HeadsOfTensor(const CpuCall &call, const QuantizedRole &tensor)
      : call(call), tensor(tensor), rows(call.sizeOf(specOf(tensor.from).rows)),
        heads(call.sizeOf(specOf(tensor.from).heads)), dim(call.sizeOf(specOf(tensor.from).dim)),
        blockRows(tensor.from != Role::v && call.elements.scaleRows ? call.elements.scaleRows
                                                                    : std::max<int64_t>(rows, 1)),
        signs(tensor.from == Role::v ? nullptr : call.as<const float>(Role::rotation)),
        fromStride(call.stridesOf(tensor.from)), toStride(call.stridesOf(tensor.to)) {}

  void quantize() const {
    const int64_t count = int64_t(call.batch) * heads;
    parallelFor(count, threadCountFor(count, call.threads), [&](int, int64_t head) { quantize(head); });
  }

private:
  int64_t offset(const CpuStrides &stride, int64_t head, int64_t row) const {
    return head / heads * stride[0] + row * stride[1] + head % heads * stride[2];
  }

  // What is subtracted from each row; empty: nothing.
  std::vector<float> meanOf(int64_t head) const {
    float *means = tensor.from == Role::k ? call.as<float>(Role::kMean) : nullptr;
    if (!means)
      return {};
    std::vector<float> row(dim);
    std::vector<double> sums(dim);
    for (int64_t i = 0; i < rows; ++i) {
      load(head, i, {}, row);
      for (int64_t c = 0; c < dim; ++c)
        sums[c] += std::isfinite(row[c]) ? row[c] : 0;
    }
    for (int64_t c = 0; c < dim; ++c)
      means[head * dim + c] = float(sums[c] / std::max<int64_t>(rows, 1));
    return {means + head * dim, means + (head + 1) * dim};
  }

  void load(int64_t head, int64_t row, const std::vector<float> &mean, std::vector<float> &values) const {
    loadElements(call.elementOf(tensor.from), call.as<void>(tensor.from), offset(fromStride, head, row), dim,
                 values.data());
    if (signs)
      rotate(signs, std::min(dim & -dim, kMostTogether), values);
    for (size_t c = 0; c < mean.size(); ++c)
      values[c] -= mean[c];
  }

  void quantize(int64_t head) const {
    const std::vector<float> mean = meanOf(head);
    const int64_t blocks = call.elements.scaleRows && tensor.from != Role::v ? (rows + blockRows - 1) / blockRows : 1;
    for (int64_t block = 0; block < blocks; ++block)
      quantize(head, {block * blockRows, std::min(rows, (block + 1) * blockRows)}, mean, head * blocks + block);
  }

  struct RowRange {
    int64_t first, end;
  };

  void quantize(int64_t head, const RowRange &range, const std::vector<float> &mean, int64_t number) const {
    std::vector<float> values(dim);
    float largest = 0;
    for (int64_t row = range.first; row < range.end; ++row) {
      load(head, row, mean, values);
      for (float value : values)
        largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
    }
    const float most = float(traitsOf(DType::e4m3).largest);
    const float descale = largest > 0 ? std::max(largest / most, kLeastDescale) : 1.0f;
    if (float *descales = call.as<float>(tensor.descale))
      descales[number] = descale;
    const float factor = 1.0f / descale;
    for (int64_t row = range.first; row < range.end; ++row) {
      load(head, row, mean, values);
      for (float &value : values)
        value = std::isfinite(value) ? value * factor : NAN;
      call.store(tensor.to, DType::e4m3, values.data(), offset(toStride, head, row), dim);
    }
  }

  const CpuCall &call;
  const QuantizedRole &tensor;
  int64_t rows, heads, dim;
  int64_t blockRows;  // that share a scale
  const float *signs; // null: rows are not rotated
  CpuStrides fromStride, toStride;
};

Status quantize(const CpuCall &call, KindBase kind) {
  if (traitsOf(call.elements.q).isScaled())
    return Status::unsupported("attention arguments: q: dtype: calls of kind " + Kind{kind}.name() + " take " +
                               elementList(&ElementTraits::isOfWarps) + ", not " + dtypeName(call.elements.q));
  for (const QuantizedRole &tensor : kTensors)
    HeadsOfTensor(call, tensor).quantize();
  return {};
}

} // namespace

Status quantizeOnCpu(const CpuCall &call) { return quantize(call, KindBase::quantize); }
Status quantizeRotatedOnCpu(const CpuCall &call) { return quantize(call, KindBase::quantizeRotated); }

} // namespace heddle
