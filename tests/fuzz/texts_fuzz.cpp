//===- texts_fuzz.cpp - hostile records of configurations and launch plans --===//
// What reads is written and read again: the same text.
//===----------------------------------------------------------------------===//
#include "codegen/Config/KernelConfig.h"
#include "runtime/Core/LaunchPlan.h"
#include "tests/fuzz/Fuzz.h"

using namespace heddle;

namespace {

template <class Record> void roundTrip(std::string_view text) {
  Result<Record> read = Record::parse(text);
  if (!read)
    return;
  const std::string written = read->str();
  Result<Record> again = Record::parse(written);
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
  roundTrip<KernelConfig>(text);
  roundTrip<LaunchPlan>(text);
  roundTrip<LaunchExpr>(text);
  evaluate(text);
  return 0;
}
