//===- HostLaunch.h - a whole kernel run on the host ------------------------===//
// Owns the way from the text and the launch plan of a kernel to its results without a GPU: the host compiles the text
// with tests/unit/host_gpu, parameter blocks are filled as the plan says, launches run one block after the other.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_HOSTLAUNCH_H
#define HEDDLE_TESTS_UNIT_SUPPORT_HOSTLAUNCH_H

#include "runtime/Core/LaunchPlan.h"
#include "support/HostCompiler.h"

#include <functional>
#include <string>

namespace heddle::test {

/// One call: where pointers lead, null if nowhere, and its numbers.
struct HostCall {
  std::function<const void *(const PointerSource &)> address; ///< of roles and operands
  LaunchSymbols symbols;
  float scaleLog2 = 0;
};

/// In which blocks start, and which of their warps are late; numbers are those of host_gpu::BlockOrder.
enum class BlockOrder : unsigned { ascending, descending, lateWarps };

class HostKernel {
public:
  /// Compiles; throws std::runtime_error with the compiler's messages.
  HostKernel(const std::string &text, LaunchPlan plan);

  /// All launches, in order, the blocks of each in `order`; the workspace begins as NaN.
  void run(const HostCall &call, BlockOrder order = BlockOrder::ascending) const;

  const LaunchPlan &plan() const { return planned; }

private:
  using Launch = void (*)(const char *entry, const void *params, const unsigned (&grid)[3], unsigned threads,
                          unsigned order);

  LaunchPlan planned;
  HostLibrary library;
  Launch launch = nullptr;
};

} // namespace heddle::test

#endif
