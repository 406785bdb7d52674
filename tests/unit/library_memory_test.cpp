// Memory that ends inside libheddle is a status: LLVM, whose functions know no exceptions, included.
#include "counted_allocations.h"
#include "library_fixture.h"

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
