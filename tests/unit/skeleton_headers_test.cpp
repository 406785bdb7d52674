//===- skeleton_headers_test.cpp - device files that stand alone ------------===//
// Every device file compiles behind the traits and the pattern of a kernel, with no other device file before it: it
// includes what it uses. Kernels are templates on both: two of a skeleton are one translation unit, in which nothing is
// called KernelTraits or Pattern. NVRTC needs no GPU.
//===----------------------------------------------------------------------===//
#include "support/Places.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Nvrtc/Compiler.h"
#include "codegen/Nvrtc/KernelSource.h"
#include "codegen/Nvrtc/NvrtcLibrary.h"
#include "codegen/Skeletons/Shared/EmbeddedSources.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/WarpgroupShapes.h"
#include "codegen/Target/FindArch.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/PreparedPattern.h"
#include "support/FirstSource.h"

#include <doctest/doctest.h>

#include <set>

using namespace heddle;

namespace {

struct Wanted {
  std::string kind, arch;
  std::string pattern = "longnet";
  int64_t headDim = 64;
};

KernelSource sourceOf(const Wanted &wanted) {
  const auto &[kind, arch, name, headDim] = wanted;
  auto file = PatternFile::load(test::places().patterns + "/" + name + ".mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  const Walk walk = kind == "row_dot" ? Walk::both : Kind::parse(kind)->walk();
  auto pattern = preparePattern(**file, PassFunctions::ofDefaults, walk);
  REQUIRE_MESSAGE(pattern.isOk(), pattern.status().message());
  KernelShape shape;
  shape.kind = *Kind::parse(kind);
  shape.arch = *findGpuArch(arch);
  shape.headDim = shape.valueDim = headDim;
  const KernelRequest request = makeRequest(*pattern, shape);
  auto config = defaultConfig(request);
  REQUIRE_MESSAGE(config.isOk(), config.status().message());
  auto source = test::firstSource(*pattern, request, *config);
  REQUIRE_MESSAGE(source.isOk(), source.status().message());
  return *source;
}

/// The source of a kernel up to the include of its skeleton.
struct Beginning {
  Beginning(const Wanted &wanted) : source(sourceOf(wanted)), arch(wanted.arch) {
    source.text.erase(source.text.rfind("#include"));
  }
  KernelSource source;
  std::string arch;
};

Status compileBehind(const Beginning &beginning, const EmbeddedFile &header) {
  KernelSource source = beginning.source;
  source.text += "#include \"" + std::string(header.name) + "\"\n";
  source.text += "extern \"C\" __global__ void " + std::string(kKernelEntry) + "() {}\n";
  return compile(source, beginning.arch).status();
}

/// Takes what begins with a text off another, up to what begins with a third, or to its end.
std::string cut(std::string &text, const std::string &from, const std::string &to = "") {
  const size_t begin = text.rfind(from), end = to.empty() ? text.size() : text.find(to, begin);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  const std::string found = text.substr(begin, end - begin);
  text.erase(begin, found.size());
  return found;
}

/// What a source is made of, behind the prelude: the shapes of its products, its traits and its pattern, its skeleton, and
/// its kernels.
struct Parts {
  explicit Parts(std::string text) {
    kernels = cut(text, "using Kernel");
    skeleton = cut(text, "#include");
    if (const std::string macro = "#define HEDDLE_WARPGROUP_SHAPES"; text.find(macro) != std::string::npos)
      shapes = cut(text, macro, "\n\n");
    body = text.substr(text.find("struct KernelTraits"));
  }
  std::string shapes, body, skeleton, kernels;
};

/// The shapes of both, of Hopper's kernels.
std::string bothShapes(const std::string &first, const std::string &second) {
  const std::string text = first + second, shape = "  SHAPE(";
  std::set<int64_t> columns;
  for (size_t at = text.find(shape); at != std::string::npos; at = text.find(shape, at + 1))
    columns.insert(std::stoll(text.substr(at + shape.size())));
  return columns.empty() ? "" : warpgroupShapes(columns);
}

/// The kernels of both in one source, each in a namespace of its own.
KernelSource togetherOf(const Wanted &first, const Wanted &second) {
  KernelSource source = sourceOf(first);
  Parts one(source.text), other(sourceOf(second).text);
  REQUIRE(one.skeleton == other.skeleton);
  for (size_t at; (at = other.kernels.find("    heddle_")) != std::string::npos;)
    other.kernels.replace(at, 11, "    second_");
  auto inside = [](const char *name, const std::string &text) {
    return std::string("namespace ") + name + " {\n" + text + "}\n";
  };
  source.text = "#include \"Shared/prelude.cuh\"\n" + bothShapes(one.shapes, other.shapes) + inside("first", one.body) +
                inside("second", other.body) + one.skeleton + inside("first", one.kernels) +
                inside("second", other.kernels);
  return source;
}

} // namespace

TEST_CASE("device files include what they use") {
  if (!NvrtcLibrary::shared().isOk()) {
    MESSAGE("skipped: " << NvrtcLibrary::shared().status().message());
    return;
  }
  const Beginning kernels[] = {{{"forward", "sm_90a"}},          {{"backward", "sm_90a"}},
                               {{"forward", "sm_80"}},           {{"backward", "sm_80"}},
                               {{"row_dot", "sm_80"}},           {{"decode", "sm_80"}},
                               {{"quantize", "sm_89"}},          {{"quantize_rotated", "sm_89"}},
                               {{"cascade", "sm_80", "causal"}}, {{"decode_invariant", "sm_80"}}};
  for (const EmbeddedFile &file : skeletonSources()) {
    Status status;
    for (const Beginning &kernel : kernels)
      if (status = compileBehind(kernel, file); status.isOk())
        break;
    CHECK_MESSAGE(status.isOk(), std::string(file.name) << ": " << status.message());
  }
}

TEST_CASE("two kernels of a skeleton are one translation unit") {
  if (!NvrtcLibrary::shared().isOk()) {
    MESSAGE("skipped: " << NvrtcLibrary::shared().status().message());
    return;
  }
  const std::pair<Wanted, Wanted> pairs[] = {
      {{"forward", "sm_90a", "causal"}, {"forward", "sm_90a", "document", 128}},
      {{"forward", "sm_80", "causal"}, {"forward", "sm_80", "document", 128}},
      {{"backward", "sm_90a", "causal"}, {"backward", "sm_90a", "document", 128}},
      {{"backward", "sm_80", "causal"}, {"backward", "sm_80", "document", 128}},
      {{"decode", "sm_80", "causal"}, {"decode", "sm_80", "document", 128}},
      {{"cascade", "sm_80", "causal"}, {"cascade", "sm_80", "document", 128}},
      {{"decode_invariant", "sm_80", "causal"}, {"decode_invariant", "sm_80", "document", 128}},
  };
  for (const auto &pair : pairs) {
    CAPTURE(pair.first.kind);
    CAPTURE(pair.first.arch);
    const auto &[first, second] = pair;
    const auto code = compile(togetherOf(first, second), first.arch);
    CHECK_MESSAGE(code.isOk(), code.status().message());
    if (code.isOk())
      CHECK(code->ptx.find(".entry second_kernel") != std::string::npos);
  }
}
