#include "compiler/Measure/KeySplit.h"

namespace heddle {

AttentionArgs overKeys(AttentionArgs args, int64_t begin, int64_t end) {
  for (heddle_tensor *tensor : {&args.k, &args.v}) {
    int64_t elementBytes = dtypeBytes(*dtypeOfCode(tensor->dtype));
    tensor->ptr = static_cast<char *>(tensor->ptr) + begin * tensor->stride[1] * elementBytes;
    tensor->size[1] = end - begin;
  }
  args.k_origin += begin;
  return args;
}

Result<KeySplit> KeySplit::create(const Kernel &first, const Kernel &second, const AttentionArgs &args, int64_t cut) {
  constexpr uint8_t kNaNByte = 0xff; // what the first launch does not write shows in the result
  const heddle_tensor &shape = args.out;
  int64_t rows = shape.size[0] * shape.size[1] * shape.size[2];
  HEDDLE_ASSIGN(DeviceBuffer out,
                DeviceBuffer::allocate(first.device(), rows * shape.size[3] * int64_t(sizeof(float))));
  HEDDLE_ASSIGN(DeviceBuffer lse, DeviceBuffer::allocate(first.device(), rows * int64_t(sizeof(float))));
  HEDDLE_TRY(out.fillBytes(kNaNByte));
  HEDDLE_TRY(lse.fillBytes(kNaNByte));

  AttentionArgs head = overKeys(args, 0, cut);
  head.out = contiguousTensor(out.data(), kAccumulator, {shape.size[0], shape.size[1], shape.size[2], shape.size[3]});
  head.lse = static_cast<float *>(lse.data());
  HEDDLE_ASSIGN(int64_t bytes, first.workspaceBytes(head));
  HEDDLE_ASSIGN(DeviceBuffer workspace, DeviceBuffer::allocate(first.device(), bytes));
  head.workspace = bytes > 0 ? workspace.data() : nullptr;
  head.workspace_bytes = bytes;
  HEDDLE_ASSIGN(PreparedLaunch before, first.prepare(head));

  AttentionArgs tail = overKeys(args, cut, args.k.size[1]);
  tail.carry_out = static_cast<const float *>(out.data());
  tail.carry_lse = head.lse;
  HEDDLE_ASSIGN(PreparedLaunch behind, second.prepare(tail));
  return KeySplit(std::move(out), std::move(lse), std::move(workspace), std::move(before), std::move(behind));
}

Status KeySplit::launch(cuda::Stream stream) const {
  HEDDLE_TRY(first.launch(stream));
  return second.launch(stream);
}

} // namespace heddle
