#include "runtime/Device/OwnZeros.h"

#include <cstring>

namespace heddle {
namespace {

// A region in the workspace of the call, and where its bytes are to be instead.
struct Move {
  size_t region;
  cuda::DevicePointer from;
  int64_t bytes, offset;

  bool has(cuda::DevicePointer address) const { return address - from < cuda::DevicePointer(bytes); }
};

std::vector<Move> movesOf(const LaunchPlan &plan, const CallInputs &inputs) {
  std::vector<Move> moves;
  const auto workspace = reinterpret_cast<uintptr_t>(inputs.args.workspace);
  int64_t end = 0;
  for (size_t i = 0; i < plan.regions.size(); ++i)
    if (plan.regions[i].name.rfind(kLeftZero, 0) == 0 && inputs.layout.bytes[i] > 0) {
      constexpr int64_t kAlignment = 256;
      moves.push_back({i, workspace + uintptr_t(inputs.layout.offset[i]), inputs.layout.bytes[i], end});
      end += (inputs.layout.bytes[i] + kAlignment - 1) / kAlignment * kAlignment;
    }
  return moves;
}

Result<DeviceBuffer> zeros(const Device &device, int64_t bytes) {
  HEDDLE_ASSIGN(DeviceBuffer memory, DeviceBuffer::allocate(device, bytes));
  HEDDLE_ASSIGN(DeviceStream stream, DeviceStream::create(device)); // others may be captured meanwhile
  HEDDLE_ASSIGN(DeviceEvent end, DeviceEvent::create(device));
  HEDDLE_TRY(memory.fillBytes(0, stream.handle()));
  HEDDLE_TRY(end.record(stream.handle()));
  HEDDLE_TRY(end.synchronize());
  return memory;
}

void movePointers(const LaunchPlan &plan, const Move &move, cuda::DevicePointer to, EvaluatedCall &call) {
  for (size_t i = 0; i < plan.launches.size(); ++i)
    for (const SlotSpec &slot : plan.launches[i].slots) {
      if (slot.kind != SlotSpec::Kind::ptr || !(slot.pointer == PointerSource::region(int64_t(move.region))))
        continue;
      unsigned char *const place = call.params + call.launches[i].paramBegin + slot.offset;
      uint64_t address;
      std::memcpy(&address, place, sizeof address);
      address = address - move.from + to;
      std::memcpy(place, &address, sizeof address);
    }
}

void dropClears(size_t launches, const Move &move, EvaluatedCall &call) {
  int kept = 0, clear = 0;
  for (size_t i = 0; i < launches; ++i) {
    for (; clear < call.launches[i].clearEnd; ++clear)
      if (!move.has(call.clears[clear].address))
        call.clears[kept++] = call.clears[clear];
    call.launches[i].clearEnd = kept;
  }
  call.clearCount = kept;
}

} // namespace

std::optional<OwnZeros> OwnZeros::give(const LoadedKernel &kernel, const CallInputs &inputs, EvaluatedCall &call) {
  const std::vector<Move> moves = movesOf(kernel.plan, inputs);
  if (moves.empty())
    return std::nullopt;
  const RelaxedCapture relaxed(*kernel.device.state()->driver);
  Result<DeviceBuffer> memory = zeros(kernel.device, moves.back().offset + moves.back().bytes);
  if (!memory)
    return std::nullopt;
  for (const Move &move : moves) {
    movePointers(kernel.plan, move, memory->address() + cuda::DevicePointer(move.offset), call);
    dropClears(kernel.codes.size(), move, call);
  }
  return OwnZeros(std::move(*memory));
}

} // namespace heddle
