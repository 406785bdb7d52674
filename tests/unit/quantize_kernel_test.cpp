// q, k and v as e4m3 by the processors, which the definition is compared with, and by the kernel without a GPU: its
// whole text on the host, a thread at a time; both write the same bits.
#include "support/QuantizeOnHost.h"

using namespace heddle;
using namespace heddle::test;

namespace {

struct RotatedKernel : QuantizeKernel {
  explicit RotatedKernel(const std::string &changes = "", DType dtype = DType::bf16, int64_t headDim = 64,
                         int64_t valueDim = 64)
      : QuantizeKernel(changes, dtype, headDim, valueDim, kRotated) {}
};

} // namespace

TEST_CASE("heads of less than a piece, of one, of several; queries and keys of different numbers") {
  const QuantizeKernel kernel;
  kernel.check(QuantizeCall(quantizedSizes(2, 300, 515, 4, 2)));
  kernel.check(QuantizeCall(quantizedSizes(1, 1, 128, 2, 1)), 132);
  kernel.check(QuantizeCall(quantizedSizes(3, 257, 1, 1, 1)), 1);
}

// Blocks run one after the other here, so one takes all: of heads of more pieces than it has room for it reads some twice.
TEST_CASE("pieces that wait in shared memory: heads that fit, heads that do not, types, smoothed keys") {
  const QuantizeKernel kernel(",units=1,warps=1,min_blocks=1,slots=9,ahead=2");
  kernel.check(QuantizeCall(quantizedSizes(2, 20, 9, 4, 2)));
  kernel.check(QuantizeCall(quantizedSizes(1, 130, 60, 3, 1)));
  kernel.check(QuantizeCall(quantizedSizes(1, 0, 31, 1, 1)));
  QuantizeKernel(",units=2,warps=2,heads=1,min_blocks=1,slots=3,ahead=1", DType::fp32, 80, 32)
      .check(QuantizeCall(quantizedSizes(2, 70, 20, 3, 3, 80, 32), DType::fp32));
  QuantizeCall smoothed(quantizedSizes(2, 40, 100, 4, 2));
  smoothed.smooth();
  QuantizeKernel(",slots=2,ahead=1,min_blocks=1").checkSmoothed(smoothed);
}

TEST_CASE("lengths of 0 leave tensors out") {
  const QuantizeKernel kernel;
  kernel.check(QuantizeCall(quantizedSizes(1, 0, 40, 2, 2)));
  kernel.check(QuantizeCall(quantizedSizes(1, 40, 0, 2, 2)));
}

TEST_CASE("types, head dims that differ or divide no piece, configurations") {
  QuantizeKernel("", DType::fp16, 96, 32).check(QuantizeCall(quantizedSizes(1, 130, 260, 2, 1, 96, 32), DType::fp16));
  QuantizeKernel("", DType::fp32, 80, 80).check(QuantizeCall(quantizedSizes(1, 70, 140, 2, 2, 80, 80), DType::fp32));
  QuantizeKernel(",units=1,warps=1,heads=2,lead=0,min_blocks=1,evict_first=0")
      .check(QuantizeCall(quantizedSizes(1, 33, 20, 3, 1)));
}

TEST_CASE(
    "heads of zeros, of numbers at both ends of the type; infinity and NaN become NaN, others are as without them") {
  QuantizeCall call(quantizedSizes(1, 8, 140, 5, 5), DType::fp32);
  const auto set = [&](int64_t head, auto valueOf) {
    for (int64_t row = 0; row < 140; ++row)
      for (int64_t c = 0; c < 64; ++c)
        call.inputs.k.set((row * 5 + head) * 64 + c, valueOf(row, c));
  };
  set(0, [](int64_t, int64_t c) { return c % 2 ? 0.0f : -0.0f; });
  set(1, [](int64_t row, int64_t c) { return float(row - 70) * float(c) * 0x1p-149f; });
  set(2, [](int64_t row, int64_t c) { return float(c - 32) * float(row) * 0x1p114f; });
  set(3, [](int64_t row, int64_t c) {
    return row == 139 && c == 5 ? INFINITY : row == 3 ? NAN : float(c) - float(row);
  });
  set(4, [](int64_t row, int64_t c) { return (c % 2 ? 1.0f : -1.0f) * (float(c) + float(row) / 256); });
  const QuantizeKernel kernel("", DType::fp32);
  kernel.check(call);
  const RoleTensors results = call.onCpu();
  CHECK(results.descaleK.get(0) == 1);
  CHECK(results.descaleK.get(1) == 0x1p-126f);
  CHECK(results.descaleK.get(3) == 139.0f / 448);
  CHECK(std::isnan(results.quantizedK.get((139 * 5 + 3) * 64 + 5)));
  CHECK(results.quantizedK.get((139 * 5 + 3) * 64) == -448);
}

TEST_CASE("k less the mean of its rows: means near those of the definition, what is left is quantised by itself") {
  QuantizeCall call(quantizedSizes(2, 40, 515, 4, 2));
  QuantizeCall plain = call;
  plain.smooth(), call.smooth();
  plain.inputs.kMean = {};
  QuantizeKernel().checkSmoothed(call);
  CHECK(call.onCpu().descaleK.get(3) < plain.onCpu().descaleK.get(3) / 8);
  QuantizeCall wide(quantizedSizes(1, 3, 70, 1, 1, 80, 32), DType::fp32);
  wide.smooth();
  wide.inputs.k.set(80 * 9 + 4, INFINITY);
  QuantizeKernel(",warps=2,units=1", DType::fp32, 80, 32).checkSmoothed(wide);
  QuantizeCall none(quantizedSizes(1, 3, 0, 1, 1));
  none.inputs.kMean = HostTensor::zeros(DType::fp32, {1, 1, 64});
  CHECK(QuantizeKernel().run(none, 2, BlockOrder::ascending).kMean.get(63) == 0);
}

namespace {

// The same elements of q and k in all calls, in fp32.
struct RotatedCall : QuantizeCall {
  explicit RotatedCall(const AttentionSizes &sizes) : QuantizeCall(sizes, DType::fp32) { rotate(); }

  RoleTensors plain() const {
    QuantizeCall call = *this;
    call.inputs.kind = kQuantize, call.inputs.rotation = {};
    return call.onCpu();
  }
};

int64_t countNaN(const HostTensor &tensor) {
  int64_t count = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i)
    count += std::isnan(tensor.get(i));
  return count;
}

} // namespace

TEST_CASE("rotated rows: every number of elements that are rotated together, heads that are shared, odd rows") {
  for (int64_t dim : {16, 48, 64, 80, 96, 112, 128, 256, 512}) {
    CAPTURE(dim);
    QuantizeCall call(quantizedSizes(2, 37, 51, 4, 2, dim, 32));
    call.rotate();
    const RotatedKernel kernel("", DType::bf16, dim, 32);
    kernel.check(call);
    call.smooth();
    kernel.checkSmoothed(call);
  }
}

TEST_CASE("rotated rows: of other types, in shared memory, in blocks with threads beyond whole rows, of no length") {
  for (DType dtype : {DType::fp16, DType::fp32}) {
    QuantizeCall call(quantizedSizes(1, 130, 45, 3, 1, 96, 96), dtype);
    call.rotate();
    RotatedKernel("", dtype, 96, 96).check(call);
  }
  const RotatedKernel held(",units=1,warps=1,min_blocks=1,slots=9,ahead=2", DType::bf16, 80, 64);
  QuantizeCall call(quantizedSizes(2, 70, 31, 4, 2, 80, 64)); // more pieces than find room: some are read again
  call.rotate();
  held.check(call);
  call.smooth();
  held.checkSmoothed(call);
  QuantizeCall none(quantizedSizes(1, 0, 9, 2, 2, 80, 64));
  none.rotate();
  held.check(none);
}

TEST_CASE("a rotation leaves v as it is, and depends on its signs") {
  QuantizeCall call(quantizedSizes(1, 20, 30, 2, 1));
  const RoleTensors plain = call.onCpu();
  call.rotate(1);
  const RoleTensors first = call.onCpu();
  call.rotate(2);
  const RoleTensors second = call.onCpu();
  CHECK(first.quantizedV.data == plain.quantizedV.data);
  CHECK(first.descaleV.data == plain.descaleV.data);
  for (Role role : {Role::quantizedQ, Role::quantizedK}) {
    CHECK(first.of(role).data != plain.of(role).data);
    CHECK(first.of(role).data != second.of(role).data);
  }
}

TEST_CASE("of rotated rows, infinity and NaN take the elements that are rotated with them, and nothing else") {
  RotatedCall call(quantizedSizes(1, 9, 60, 2, 2, 96, 96));
  const auto place = [](int64_t row, int64_t head, int64_t dim) { return (row * 2 + head) * 96 + dim; };
  const RoleTensors before = call.onCpu();
  call.inputs.q.set(place(3, 1, 40), INFINITY);
  call.inputs.k.set(place(0, 0, 95), NAN);
  call.inputs.k.set(place(59, 0, 0), -INFINITY);
  call.inputs.k.set(place(59, 0, 31), INFINITY);
  RotatedKernel("", DType::fp32, 96, 96).check(call);
  const RoleTensors results = call.onCpu();
  CHECK(countNaN(results.quantizedQ) == 32);
  CHECK(countNaN(results.quantizedK) == 64);
  for (int64_t dim = 0; dim < 96; ++dim) {
    CHECK(std::isnan(results.quantizedQ.get(place(3, 1, dim))) == (dim / 32 == 1));
    CHECK(std::isnan(results.quantizedK.get(place(0, 0, dim))) == (dim / 32 == 2));
    CHECK(std::isnan(results.quantizedK.get(place(59, 0, dim))) == (dim / 32 == 0));
    CHECK(results.quantizedK.get(place(58, 1, dim)) == before.quantizedK.get(place(58, 1, dim)));
  }
}

TEST_CASE("rotated rows of zeros are positive zeros of scale 1; a sum beyond fp32 is NaN, others keep their scale") {
  RotatedCall call(quantizedSizes(1, 3, 4, 1, 1, 64, 64));
  for (int64_t c = 0; c < 64; ++c) {
    for (int64_t row = 0; row < 3; ++row)
      call.inputs.q.set(row * 64 + c, c % 2 ? -0.0f : 0.0f);
    call.inputs.k.set(64 + c, 3e38f * float(call.inputs.rotation.get(c))); // their sum is 64 * 3e38, differences are 0
  }
  const RoleTensors results = call.onCpu();
  CHECK(results.descaleQ.get(0) == 1);
  for (std::byte element : results.quantizedQ.data)
    CHECK(element == std::byte(0));
  CHECK(countNaN(results.quantizedK) >= 1);
  CHECK(results.descaleK.get(0) < 1);
  const RoleTensors ofKernel = RotatedKernel("", DType::fp32).run(call, 2, BlockOrder::ascending);
  for (Role role : call.written())
    CHECK(areAlike(ofKernel.of(role), results.of(role)));
}

TEST_CASE("products of rotated rows are those of the rows, within what e4m3 leaves of them") {
  RotatedCall call(quantizedSizes(1, 40, 50, 1, 1, 96, 96));
  const RoleTensors low = call.onCpu();
  double error = 0, size = 0;
  for (int64_t i = 0; i < 40; ++i)
    for (int64_t j = 0; j < 50; ++j) {
      double wanted = 0, got = 0;
      for (int64_t c = 0; c < 96; ++c) {
        wanted += double(call.inputs.q.get(i * 96 + c)) * call.inputs.k.get(j * 96 + c);
        got += double(low.quantizedQ.get(i * 96 + c)) * low.quantizedK.get(j * 96 + c);
      }
      got *= double(low.descaleQ.get(0)) * low.descaleK.get(0);
      error += (got - wanted) * (got - wanted), size += wanted * wanted;
    }
  CHECK(std::sqrt(error / size) <
        0.06); // sqrt(2) times the error of an element, at most 1/16 and some 0.026 on average
  CHECK(low.quantizedQ.data != call.plain().quantizedQ.data);
}

TEST_CASE("signs of a tensor file are 1 or -1, one for each channel; random ones are those that Python makes") {
  QuantizeCall call(quantizedSizes(1, 4, 5, 2, 1));
  call.rotate(1);
  constexpr float ofSeed1[] = {-1, 1, 1, 1, 1, 1, 1, 1, -1, 1, 1, 1, -1, -1, -1, -1};
  for (int i = 0; i < 16; ++i)
    CHECK(call.inputs.rotation.get(i) == ofSeed1[i]);
  const auto refusal = [&](HostTensor rotation) {
    RoleTensors tensors;
    tensors.q = call.inputs.q, tensors.k = call.inputs.k, tensors.v = call.inputs.v;
    tensors.rotation = std::move(rotation);
    return makeAttentionInputs(tensors, kRotated).status().message();
  };
  CHECK(refusal(call.inputs.rotation).empty());
  HostTensor other = call.inputs.rotation;
  other.set(63, 0);
  CHECK(refusal(other) == "attention arguments: rotation: element 63: expected 1 or -1, got 0.000000");
  CHECK(refusal(randomSigns({32}, 1, "rotation")) == "tensor 'rotation' is fp32 [32]; expected [64]");
  CHECK_FALSE(refusal({}).empty());
}

namespace {

struct BlockKernel : QuantizeKernel {
  explicit BlockKernel(int64_t scaleRows, const std::string &changes = "", DType dtype = DType::bf16,
                       int64_t headDim = 64, int64_t valueDim = 64, const Kind &kind = kQuantize)
      : QuantizeKernel(changes, dtype, headDim, valueDim, kind, scaleRows) {}
};

} // namespace

TEST_CASE(
    "blocks of rows with scales of their own: of less than a piece, of several, the last one shorter, of no rows") {
  for (int64_t rows : kScaleRows) {
    const BlockKernel kernel(rows); // a piece has 128 rows
    kernel.check(QuantizeCall(quantizedSizes(2, 300, 515, 4, 2), DType::bf16, rows));
    kernel.check(QuantizeCall(quantizedSizes(1, 1, 128, 2, 1), DType::bf16, rows), 132);
    kernel.check(QuantizeCall(quantizedSizes(1, 0, 40, 2, 2), DType::bf16, rows));
    kernel.check(QuantizeCall(quantizedSizes(3, 64, 0, 3, 1), DType::bf16, rows), 1);
  }
  const QuantizeCall call(quantizedSizes(1, 300, 129, 2, 1), DType::fp16, 64);
  BlockKernel(64, ",units=1,warps=1", DType::fp16).check(call); // 4 rows
  BlockKernel(64, ",heads=3", DType::fp16).check(call);
  BlockKernel(64, ",units=1,warps=1,min_blocks=1,slots=9,ahead=2", DType::fp16).check(call);
  BlockKernel(128, ",units=2,warps=2,heads=1,min_blocks=1,slots=3,ahead=1", DType::fp32, 80, 32)
      .check(QuantizeCall(quantizedSizes(2, 170, 260, 3, 3, 80, 32), DType::fp32, 128));
  const RoleTensors results = call.onCpu();
  CHECK(results.descaleQ.shape == std::vector<int64_t>{1, 2, 5});
  CHECK(results.descaleK.shape == std::vector<int64_t>{1, 1, 3});
  CHECK(results.descaleV.shape == std::vector<int64_t>{1, 1});
  const auto largestOf = [&](int64_t first, int64_t end) {
    float largest = 0;
    for (int64_t i = first * 64; i < end * 64; ++i)
      largest = std::max(largest, std::abs(call.inputs.k.get(i)));
    return largest;
  };
  CHECK(results.descaleK.get(1) == largestOf(64, 128) / 448);
  CHECK(results.descaleK.get(2) == largestOf(128, 129) / 448);
}

TEST_CASE("blocks of rows with scales of their own: of k less the mean of all of its rows, of rotated rows") {
  for (const char *changes : {"", ",heads=3,lead=0", ",slots=2,ahead=1,min_blocks=1", ",units=1,slots=9,ahead=2"}) {
    QuantizeCall smoothed(quantizedSizes(2, 40, 515, 4, 2), DType::bf16, 64);
    smoothed.smooth();
    BlockKernel(64, changes).checkSmoothed(smoothed);
  }
  QuantizeCall wide(quantizedSizes(1, 3, 270, 1, 1, 80, 32), DType::fp32, 128);
  wide.smooth();
  wide.inputs.k.set(80 * 9 + 4, INFINITY);
  BlockKernel(128, ",warps=2,units=1", DType::fp32, 80, 32).checkSmoothed(wide);
  QuantizeCall none(quantizedSizes(1, 3, 0, 1, 1), DType::bf16, 64);
  none.inputs.kMean = HostTensor::zeros(DType::fp32, {1, 1, 64});
  CHECK(BlockKernel(64).run(none, 2, BlockOrder::ascending).kMean.get(63) == 0);
  QuantizeCall rotated(quantizedSizes(2, 150, 131, 4, 2, 96, 32), DType::bf16, 64);
  rotated.rotate();
  const BlockKernel rotating(64, "", DType::bf16, 96, 32, kRotated);
  rotating.check(rotated);
  rotated.smooth();
  rotating.checkSmoothed(rotated);
}

TEST_CASE("e4m3 is no input") {
  CpuCall call;
  call.elements = CallElements(DType::e4m3);
  for (const Kind &kind : {kQuantize, kRotated})
    CHECK(cpuFunctionOf(kind.base)(call).message() ==
          "attention arguments: q: dtype: calls of kind " + kind.name() + " take bf16, fp16 or fp32, not e4m3");
}
