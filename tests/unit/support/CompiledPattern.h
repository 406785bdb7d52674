//===- CompiledPattern.h - a pattern's functions, for this machine and as text ----===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_COMPILEDPATTERN_H
#define HEDDLE_TESTS_UNIT_SUPPORT_COMPILEDPATTERN_H

#include "codegen/Cpu/JitPattern.h"
#include "codegen/Emit/EmitPattern.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Pattern/PatternFunctions.h"
#include "support/HostPattern.h"

#include <doctest/doctest.h>

namespace heddle::test {

/// What the CPU path runs, and the text of a kernel compiled by the host's compiler.
struct Compiled {
  explicit Compiled(const PatternFile &file) {
    auto functions = functionsOf(file);
    REQUIRE_MESSAGE(functions.isOk(), functions.status().message());
    info = functions->info;
    auto compiled = JitPattern::create(*functions->module, *info);
    REQUIRE(succeeded(compiled));
    jit = std::make_unique<JitPattern>(*compiled);
    auto emitted = emitPatternFunctions(*functions->module, *info);
    REQUIRE(succeeded(emitted));
    text = std::make_unique<HostPattern>(*emitted, *info);
  }
  std::shared_ptr<const PatternInfo> info;
  std::unique_ptr<JitPattern> jit;
  std::unique_ptr<HostPattern> text;
};

} // namespace heddle::test

#endif
