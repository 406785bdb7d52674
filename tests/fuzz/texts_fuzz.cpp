//===- texts_fuzz.cpp - hostile records of configurations and launch plans --===//
// What reads is written and read again: the same text.
//===----------------------------------------------------------------------===//
#include "codegen/Config/KernelConfig.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "runtime/Core/LaunchPlan.h"
#include "tests/fuzz/Fuzz.h"

using namespace heddle;

namespace {

template <class Reader> void roundTrip(Reader reader, std::string_view text) {
  auto read = reader(text);
  if (!read)
    return;
  const std::string written = read->str();
  auto again = reader(written);
  FUZZ_REQUIRE(again.isOk(), "what was written cannot be read: " + again.status().message());
  FUZZ_REQUIRE(again->str() == written, "what was read is written differently");
}

void evaluate(std::string_view text) {
  Result<LaunchPlan> plan = LaunchPlan::parse(text);
  if (!plan)
    return;
  LaunchSymbols symbols;
  for (const KernelLaunch &launch : plan->launches)
    (void)evaluateGeometry(launch, symbols);
  (void)evaluateWorkspace(*plan, symbols);
  (void)plan->paramCount();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  roundTrip(readConfig, text);
  roundTrip(LaunchPlan::parse, text);
  roundTrip(LaunchExpr::parse, text);
  evaluate(text);
  return 0;
}
