// Values in e4m3 that are written key-major: by the processors, which the definition is compared with, and by the kernel
// without a GPU; both write the same bits.
#include "support/QuantizeOnHost.h"

using namespace heddle;
using namespace heddle::test;

namespace {

struct KeyMajorCall : QuantizeCall {
  explicit KeyMajorCall(const AttentionSizes &sizes, DType dtype = DType::bf16, int64_t scaleRows = 0)
      : QuantizeCall(sizes, dtype, scaleRows) {
    inputs.kind.hasKeyMajorValues = true;
  }
};
struct KeyMajorKernel : QuantizeKernel {
  explicit KeyMajorKernel(const std::string &changes = "", DType dtype = DType::bf16, int64_t headDim = 64,
                          int64_t valueDim = 64, KindBase base = KindBase::quantize, int64_t scaleRows = 0)
      : QuantizeKernel(changes, dtype, headDim, valueDim, {base, Adds::none, false, {}, true}, scaleRows) {}
};

} // namespace

TEST_CASE("values that are written key-major: lengths, shared heads, batches, in shared memory or read twice") {
  const KeyMajorKernel twice, held(",slots=6,ahead=2,units=2");
  for (const AttentionSizes &sizes :
       {quantizedSizes(1, 1, 1, 1, 1), quantizedSizes(2, 40, 130, 4, 2), quantizedSizes(1, 200, 333, 2, 1),
        quantizedSizes(3, 5, 64, 2, 2), quantizedSizes(1, 10, 0, 2, 1)})
    for (const QuantizeKernel *kernel :
         {static_cast<const QuantizeKernel *>(&twice), static_cast<const QuantizeKernel *>(&held)})
      kernel->check(KeyMajorCall(sizes));
}

TEST_CASE("values that are written key-major: types, head dims, pieces whose rows are no words, blocks with scales") {
  KeyMajorKernel("", DType::fp32, 128, 48).check(KeyMajorCall(quantizedSizes(1, 30, 77, 2, 1, 128, 48), DType::fp32));
  KeyMajorKernel("", DType::fp16, 64, 192).check(KeyMajorCall(quantizedSizes(1, 30, 101, 2, 1, 64, 192), DType::fp16));
  KeyMajorKernel(",units=1,warps=4", DType::bf16, 48, 240).check(KeyMajorCall(quantizedSizes(1, 9, 50, 2, 1, 48, 240)));
  KeyMajorKernel("", DType::bf16, 64, 64, KindBase::quantize, 64)
      .check(KeyMajorCall(quantizedSizes(1, 130, 150, 2, 1), DType::bf16, 64));
}

TEST_CASE("values that are written key-major are those that are written otherwise, beside smoothed and rotated rows") {
  const AttentionSizes sizes = quantizedSizes(2, 50, 90, 4, 2);
  QuantizeCall plain(sizes);
  KeyMajorCall turned(sizes);
  plain.smooth(), turned.smooth();
  plain.rotate(), turned.rotate();
  turned.inputs.kind.hasKeyMajorValues = true;
  KeyMajorKernel("", DType::bf16, 64, 64, KindBase::quantizeRotated).checkSmoothed(turned);
  const RoleTensors a = plain.onCpu(), b = turned.onCpu();
  CHECK(a.quantizedK.data == b.quantizedK.data);
  REQUIRE(b.quantizedV.shape == std::vector<int64_t>{2, 64, 2, 90});
  for (int64_t batch = 0; batch < 2; ++batch)
    for (int64_t key = 0; key < 90; ++key)
      for (int64_t head = 0; head < 2; ++head)
        for (int64_t c = 0; c < 64; ++c)
          CHECK(a.quantizedV.get(((batch * 90 + key) * 2 + head) * 64 + c) ==
                b.quantizedV.get(((batch * 64 + c) * 2 + head) * 90 + key));
}
