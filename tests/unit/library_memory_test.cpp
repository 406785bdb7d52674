// Memory that ends inside libheddle is a status: LLVM, whose functions know no exceptions, included. What it holds of
// kernels is bounded.
#include "compiler/Library/MadeKernels.h"
#include "counted_allocations.h"
#include "device_fixture.h"
#include "library_fixture.h"

#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace heddle::test;

namespace {

constexpr const char *kText = "attn.pattern @p(%left: i32 {attn.default = 7 : i32}) {\n  %w = attn.window [%left, 0]\n "
                              " %d = attn.dilate %w by 2 rule(every)\n"
                              "  %m = attn.heads %w, %d\n  attn.softmax union(%m)\n}\n";

enum class Ending { whole, status, died };

/// Of reading a pattern in a process of its own whose allocation number `failing` fails.
Ending endingWithout(long failing) {
  const pid_t child = ::fork();
  if (child == 0) {
    heddle_pattern *pattern = nullptr;
    allocationsLeft = failing;
    const heddle_status status = heddle_pattern_parse(kText, "p.mlir", nullptr, &pattern);
    const bool hasFailed = allocationsLeft < 0;
    allocationsLeft = -1;
    if (status == HEDDLE_INTERNAL && hasFailed)
      ::_exit(std::string(heddle_last_message()).find("out of memory") == 0 ? 1 : 2);
    ::_exit(status == HEDDLE_OK ? 0 : 3); // some allocations are done without
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
    return Ending::died;
  return WEXITSTATUS(status) == 0 ? Ending::whole : Ending::status;
}

} // namespace

TEST_CASE("no allocation of a pattern's reading that fails ends the process") {
  heddle_pattern *pattern = nullptr;
  REQUIRE(heddle_pattern_parse(kText, "p.mlir", nullptr, &pattern) == HEDDLE_OK); // what is made once
  heddle_pattern_close(pattern);
  const long before = allocationCount;
  REQUIRE(heddle_pattern_parse(kText, "p.mlir", nullptr, &pattern) == HEDDLE_OK);
  const long all = allocationCount - before;
  int counts[3] = {};
  for (long failing = 0; failing < all; ++failing)
    ++counts[int(endingWithout(failing))];
  MESSAGE(all << " allocations; of those that failed alone " << counts[0] << " did no harm, " << counts[1]
              << " were a status, " << counts[2] << " ended it");
  CHECK(counts[int(Ending::died)] == 0);
  CHECK(counts[int(Ending::status)] > all / 2);
}

namespace {

using namespace heddle;

constexpr int64_t kCodeBytes = 1 << 20;

/// A compiler without a database, whose kernels have a megabyte of code each.
struct Maker {
  Device device = (startFake(), require(Device::open(0)));
  MadeKernels kernels{4 * kCodeBytes};
  int made = 0;

  Result<FoundKernel> ask(const std::string &key) {
    return kernels.kernel(device, key, [&]() -> Result<KernelRecord> {
      ++made;
      if (key == "unsupported" || key == "unavailable")
        return key == "unsupported" ? Status::unsupported("no") : Status::unavailable("not now");
      KernelRecord record = forwardRecord(key);
      record.cubin.resize(size_t(kCodeBytes), 'x');
      return record;
    });
  }
  FoundKernel found(int number) { return require(ask("kernel " + std::to_string(number))); }
};

} // namespace

TEST_CASE("what a compiler without a database holds of its kernels is bounded, whatever it is asked for") {
  Maker maker;
  for (int i = 0; i < 40; ++i) {
    maker.found(i);
    CHECK(maker.kernels.heldBytes() <= 4 * kCodeBytes);
  }
  CHECK(maker.kernels.heldBytes() > 2 * kCodeBytes);
  CHECK(maker.made == 40);
  maker.found(39), maker.found(38); // kept
  CHECK(maker.made == 40);
  maker.found(0); // made again
  CHECK(maker.made == 41);
  maker.found(38), maker.found(39); // asked for later than 37
  CHECK(maker.made == 41);
}

TEST_CASE(
    "a kernel that is open is not made again when its record is gone, and one is made once by who asks together") {
  Maker maker;
  const FoundKernel open = maker.found(0);
  for (int i = 1; i < 20; ++i)
    maker.found(i);
  const FoundKernel again = maker.found(0);
  CHECK(maker.made == 20);
  CHECK(&again.kernel.record() == &open.kernel.record());
  bool isBegun = false;
  CHECK(maker.kernels.ready(maker.device, "kernel 0", isBegun).has_value());
  CHECK(isBegun);
  CHECK_FALSE(maker.kernels.ready(maker.device, "kernel 1", isBegun).has_value());
  CHECK_FALSE(isBegun);

  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { maker.found(99); });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(maker.made == 21);
}

TEST_CASE("a refusal that will not change is remembered, within the bound, and another one is not") {
  Maker maker;
  for (int i = 0; i < 2; ++i)
    CHECK(maker.ask("unsupported").status().code() == StatusCode::unsupported);
  CHECK(maker.made == 1);
  for (int i = 0; i < 2; ++i)
    CHECK(maker.ask("unavailable").status().code() == StatusCode::unavailable);
  CHECK(maker.made == 3);
  CHECK(maker.kernels.heldBytes() < 100);
}
