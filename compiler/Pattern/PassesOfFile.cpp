//===- PassesOfFile.cpp - a file's pattern as kernels are chosen for it ---===//
#include "compiler/Pattern/PassesOfFile.h"
#include "codegen/Choose/RatesOf.h"

namespace heddle {

PatternRates ratesOf(const PatternFile &file, const PassesOfFile &passes) {
  AnalysedPattern analysed{file.pattern(), file.lowered(), file.analysis(), {}, passes.whyNone, std::nullopt};
  for (const PatternFile::Pass &pass : passes.passes)
    analysed.passes.push_back(&pass.analysis);
  if (Result<std::vector<int64_t>> defaults = file.bindParameters({}))
    analysed.defaults = *defaults;
  return ratesOf(analysed);
}

} // namespace heddle
