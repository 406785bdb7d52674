// The form of the emitted text, the whole source around it, and errors at the author's line.
#include "codegen/Emit/EmitPattern.h"
#include "codegen/Emit/SourceWriter.h"
#include "support/ModuleLoader.h"
#include <algorithm>
#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;

namespace {

bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

// The pattern with one text replaced by another.
HandPattern withReplaced(HandPattern pattern, const std::string &from, const std::string &to) {
  size_t at = pattern.module.find(from);
  REQUIRE(at != std::string::npos);
  pattern.module.replace(at, from.size(), to);
  return pattern;
}

// The 1-based line of the first occurrence of `part`.
int lineOf(const std::string &text, const std::string &part) {
  size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return 1 + int(std::count(text.begin(), text.begin() + at, '\n'));
}

} // namespace

TEST_CASE("functions are device functions with commented arguments and no index type") {
  std::string text = emitText(windowPattern(5, 2));
  CHECK(contains(text, "static __device__ __forceinline__ bool pattern_keep(int32_t v1"));
  CHECK(contains(text, "// batch v1, head v2, heads v3, seqlen_q v4"));
  CHECK(contains(text, "param_1 v9, branch v10, q_position v11, k_position v12"));
  CHECK(contains(text, "int32_t param[2];"));
  CHECK_FALSE(contains(text, "size_t"));
}

TEST_CASE("names of generated functions and rows of their table go together") {
  const std::pair<Generated, const char *> names[] = {
      {Generated::Variant, "pattern_variant"},
      {Generated::Keep, "pattern_keep"},
      {Generated::KeptColumns, "pattern_kept_columns"},
      {Generated::Score, "pattern_score"},
      {Generated::Sink, "pattern_sink"},
      {Generated::DocumentRow, "pattern_document_row"},
      {Generated::ArgumentPlace, "pattern_argument_place_"},
      {Generated::TransposedKeyRate, "pattern_transposed_key_rate"},
      {Generated::TransposedBandColumns, "pattern_transposed_band_columns"},
  };
  for (const auto &[which, symbol] : names)
    CHECK(std::string(patternFunction(which).symbol) == symbol);
  CHECK(symbolOf(Generated::ArgumentGradient, 3) == "pattern_argument_gradient_3");
}

TEST_CASE("stores to the out argument stay stores") {
  std::string text = emitText(fullPattern());
  CHECK(contains(text, "[5])"));
  CHECK(contains(text, "[0] = "));
  CHECK(contains(text, "[4] = "));
}

TEST_CASE("a helper is printed before its caller, wherever the module has it") {
  std::string text = emitText(dilatedPattern());
  size_t definition = text.find(" segment_length(int32_t");
  size_t use = text.find("= segment_length(");
  REQUIRE(definition != std::string::npos);
  REQUIRE(use != std::string::npos);
  CHECK(definition < use);
}

TEST_CASE("equal modules give equal bytes, and emission leaves the module alone") {
  HandPattern pattern = dilatedPattern();
  CHECK(emitText(pattern) == emitText(pattern));
  ModuleLoader loader(pattern.module);
  mlir::FailureOr<std::string> first = emitPatternFunctions(loader.get(), *pattern.info);
  mlir::FailureOr<std::string> second = emitPatternFunctions(loader.get(), *pattern.info);
  REQUIRE(succeeded(first));
  REQUIRE(succeeded(second));
  CHECK(*first == *second);
}

TEST_CASE("no loop is unrolled by the device compiler") {
  HandPattern pattern =
      withReplaced(causalPattern(), "%kept = arith.cmpi sle, %k, %q : i32",
                   "%zero = arith.constant 0 : i32\n"
                   "%one = arith.constant 1 : i32\n"
                   "%sum = scf.for %i = %zero to %q step %one iter_args(%s = %zero) -> (i32) : i32 {\n"
                   "  %next = arith.addi %s, %i : i32\n"
                   "  scf.yield %next : i32\n"
                   "}\n"
                   "%kept = arith.cmpi sle, %k, %sum : i32");
  CHECK(contains(emitText(pattern), "  #pragma unroll 1\n  for (int32_t "));
}

TEST_CASE("the smallest integer keeps its type") {
  HandPattern pattern = withReplaced(causalPattern(), "%kept = arith.cmpi sle, %k, %q : i32",
                                     "%low = arith.constant -2147483648 : i32\n"
                                     "%kept = arith.cmpi sgt, %k, %low : i32");
  CHECK(contains(emitText(pattern), "> (-2147483647 - 1)"));
}

TEST_CASE("an op without a C++ form is an error at its line") {
  HandPattern pattern = withReplaced(causalPattern(), "%kept = arith.cmpi sle, %k, %q : i32",
                                     "%low, %high = arith.mulsi_extended %k, %q : i32\n"
                                     "%kept = arith.cmpi sle, %k, %high : i32");
  ModuleLoader loader(pattern.module);
  CHECK(failed(emitPatternFunctions(loader.get(), *pattern.info)));
  std::string line = std::to_string(lineOf(pattern.module, "mulsi_extended")) + ":";
  INFO(loader.errors());
  CHECK(contains("\n" + loader.errors(), "\n" + line));
  CHECK(contains(loader.errors(), "mulsi_extended"));
}

TEST_CASE("a function of the wrong type is an error at its line, with both types") {
  HandPattern pattern = withReplaced(causalPattern(), "@pattern_query_rate(%variant: i32)",
                                     "@pattern_query_rate(%variant: i32, %more: i32)");
  ModuleLoader loader(pattern.module);
  CHECK(failed(emitPatternFunctions(loader.get(), *pattern.info)));
  std::string line = std::to_string(lineOf(pattern.module, "@pattern_query_rate")) + ":";
  CHECK(loader.errors().rfind(line, 0) == 0);
  CHECK(contains(loader.errors(), "(i32) -> i32"));
  CHECK(contains(loader.errors(), "(i32, i32) -> i32"));
}

TEST_CASE("a missing function is named") {
  HandPattern pattern = withReplaced(causalPattern(), "@pattern_keep(", "@pattern_other(");
  ModuleLoader loader(pattern.module);
  CHECK(failed(emitPatternFunctions(loader.get(), *pattern.info)));
  CHECK(contains(loader.errors(), "pattern 'causal' has no function 'pattern_keep'"));
}

TEST_CASE("a source has provenance, prelude, traits, pattern, skeleton and kernels in this order") {
  KernelSourceParts parts;
  parts.patternName = "causal";
  parts.config = "block_m=128\nblock_n=64";
  parts.generator = "heddle 1.2.3";
  parts.traits = "struct KernelTraits {};";
  parts.pattern = emitText(causalPattern());
  parts.skeleton = "Forward/portable_forward.cuh";
  parts.kernels = "using Kernel = heddle::PortableForward<KernelTraits, Pattern>;";
  std::string source = assembleKernelSource(parts);
  CHECK(source == assembleKernelSource(parts));
  CHECK(source.rfind("// Generated by heddle 1.2.3", 0) == 0);
  size_t previous = 0;
  for (const char *part :
       {"// pattern: causal\n", "// config: block_m=128\n// block_n=64\n", "#include \"Shared/prelude.cuh\"\n",
        "struct KernelTraits {};\n", "struct Pattern {", "#include \"Forward/portable_forward.cuh\"\n",
        "using Kernel = heddle::PortableForward<KernelTraits, Pattern>;\n"}) {
    INFO(part);
    size_t at = source.find(part);
    REQUIRE(at != std::string::npos);
    CHECK(at > previous);
    previous = at;
  }
}

TEST_CASE("the writer indents, closes what it opens and ends texts with a newline") {
  SourceWriter writer;
  {
    auto outer = writer.structure("A");
    writer.constant("kOne", 1);
    auto inner = writer.function("int f()");
    writer.line("return 1;");
  }
  writer.text("last");
  CHECK(writer.take() == "struct A {\n  static constexpr int kOne = 1;\n  int f() {\n    return 1;\n"
                         "  }\n};\nlast\n");
}
