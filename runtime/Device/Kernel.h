// Owns the way from a stored record to work on a stream: load once per kernel and context, check the
// arguments, evaluate the LaunchPlan, fill the parameter blocks, launch. The promises are those of
// runtime/Include/heddle.h.
#pragma once

#include "runtime/Core/KernelRecord.h"
#include "runtime/Core/LaunchPlan.h"
#include "runtime/Device/Device.h"
#include "runtime/Include/heddle.h"

#include <array>
#include <memory>
#include <optional>

namespace heddle {

using AttentionArgs = heddle_attention_args;

// All zero but for struct_size.
inline AttentionArgs makeAttentionArgs() {
  AttentionArgs args{};
  args.struct_size = sizeof(AttentionArgs);
  return args;
}

// A contiguous tensor; sizes of batch, rows, heads, dim.
heddle_tensor contiguousTensor(void *ptr, DType dtype, const std::array<int64_t, 4> &size);
// Sets the field of a role: of a tensor to a contiguous one of this shape, [batch, rows, heads, dim], of an array to
// `ptr`.
void bindRole(AttentionArgs &args, Role role, void *ptr, DType dtype, const std::vector<int64_t> &shape);

struct KernelRow;     // runtime/Core/Counters.h
struct LoadedKernel;  // modules, functions, plan
struct PreparedState; // one frozen call

// Frozen arguments: launch() is one launch of a graph (LaunchGraph.h), else one driver call per clear and one per
// kernel. Movable, thread safe.
class PreparedLaunch {
public:
  PreparedLaunch(PreparedLaunch &&) noexcept;
  PreparedLaunch &operator=(PreparedLaunch &&) noexcept;
  ~PreparedLaunch();
  Status launch(cuda::Stream stream) const;
  // Of the first kernel; the workspace is that of all.
  const LaunchGeometry &geometry() const;
  // Pairs that one launch keeps, which a pattern's kernel does not know; counted from the next launch on.
  void setPairs(int64_t pairs);

private:
  friend class Kernel;
  explicit PreparedLaunch(std::unique_ptr<PreparedState> state);
  std::unique_ptr<PreparedState> state;
};

// A copyable handle. Thread safe; two threads that load one record into one context share one module.
class Kernel {
public:
  // Takes the cubin if it runs on this GPU, else lets the driver compile the PTX (isJitCompiled). Failures:
  // corrupt (plan or code unreadable), unsupported (architecture, driver older than min_driver, resources);
  // the driver's log is in the message.
  static Result<Kernel> load(const Device &device, const KernelRecord &record);

  // The record without its code.
  const KernelRecord &record() const;
  const LaunchPlan &plan() const;
  const Device &device() const;
  bool isJitCompiled() const;
  // What this process counts of the kernel on its GPU, whoever launches it.
  KernelRow &row() const;

  // Failures: invalidArgument or unsupported, naming the tensor or field; internal with the driver's error.
  // A sticky GPU fault of earlier work may show up here as well.
  Status launch(cuda::Stream stream, const AttentionArgs &args) const;
  Result<PreparedLaunch> prepare(const AttentionArgs &args) const;
  // What args.workspace_bytes must at least be; the workspace fields are not looked at.
  Result<int64_t> workspaceBytes(const AttentionArgs &args) const;

private:
  friend class WeakKernel;
  explicit Kernel(std::shared_ptr<LoadedKernel> loaded) : loaded(std::move(loaded)) {}
  std::shared_ptr<LoadedKernel> loaded;
};

// Of a kernel, without keeping it loaded.
class WeakKernel {
public:
  explicit WeakKernel(const Kernel &kernel) : loaded(kernel.loaded) {}
  // While it is still loaded.
  std::optional<Kernel> lock() const {
    std::shared_ptr<LoadedKernel> kernel = loaded.lock();
    return kernel ? std::optional<Kernel>(Kernel(std::move(kernel))) : std::nullopt;
  }

private:
  std::weak_ptr<LoadedKernel> loaded;
};

} // namespace heddle
