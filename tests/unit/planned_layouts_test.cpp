//===- planned_layouts_test.cpp - shared memory of configurations -------------===//
// What plans say of shared memory is what kernels assert of it, for every layout of the feasible configurations that are a
// few changes from the default: those of a skeleton are one translation unit, which asks for the types of the kernels.
// NVRTC needs no GPU.
//===----------------------------------------------------------------------===//
#include "support/Places.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Nvrtc/Compiler.h"
#include "codegen/Nvrtc/KernelSource.h"
#include "codegen/Nvrtc/NvrtcLibrary.h"
#include "codegen/Skeletons/Shared/ConfigSpace.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Target/FindArch.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/PreparedPattern.h"
#include "support/FirstSource.h"

#include <doctest/doctest.h>

#include <map>
#include <sstream>

using namespace heddle;

namespace {

/// Lines of numbers that places in shared memory depend on.
std::string layoutIn(const std::string &traits) {
  std::string layout;
  std::istringstream lines(traits);
  for (std::string line; std::getline(lines, line);)
    for (const char *name : {"kSmem", "kBlock", "kStages", "kWarps", "kQueryStages", "kReduce"})
      if (line.find(name) != std::string::npos)
        layout += line + "\n";
  return layout;
}

/// The traits of one configuration of each layout; spaces have half a million.
std::map<std::string, std::string> layoutsOf(const Skeleton &skeleton, const KernelRequest &request) {
  constexpr size_t kMostChanges = 4;
  std::map<std::string, std::string> traitsOf;
  const ConfigSpace space(skeleton, request);
  space.forEach([&](const ConfigSpace::Point &point, const Rejection *rejection) {
    if (rejection || space.changesFromDefault(point) > kMostChanges)
      return;
    std::string traits = skeleton.traits(request, space.configAt(point));
    traitsOf.try_emplace(layoutIn(traits), std::move(traits));
  });
  return traitsOf;
}

std::string renamed(std::string traits, const std::string &name) {
  const std::string old = "struct KernelTraits";
  const size_t at = traits.find(old);
  REQUIRE(at != std::string::npos);
  return traits.replace(at, old.size(), "struct " + name);
}

/// The source of a kernel, with the types of kernels of all layouts in the place of what it exports.
KernelSource typesOf(KernelSource source, const std::map<std::string, std::string> &layouts) {
  const std::string beginning = "using Kernel = ", end = "<KernelTraits, Pattern>;";
  const size_t at = source.text.rfind(beginning), last = source.text.find(end, at);
  REQUIRE(last != std::string::npos);
  const std::string kernel = source.text.substr(at + beginning.size(), last - at - beginning.size());
  source.text.erase(at);
  int number = 0;
  for (const auto &[layout, traits] : layouts) {
    const std::string name = "Traits" + std::to_string(number++);
    source.text += renamed(traits, name) + "static_assert(sizeof(" + kernel + "<" + name + ", Pattern>) > 0, \"\");\n";
  }
  source.text += "extern \"C\" __global__ void " + std::string(kKernelEntry) + "() {}\n";
  return source;
}

} // namespace

TEST_CASE("kernels assert what plans say of shared memory, for layouts near the default") {
  if (!NvrtcLibrary::shared().isOk()) {
    MESSAGE("skipped: " << NvrtcLibrary::shared().status().message());
    return;
  }
  auto file = PatternFile::load(test::places().patterns + "/causal.mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  for (const char *kind : {"forward", "backward"}) {
    auto pattern = preparePattern(**file, PassFunctions::ofDefaults, Kind::parse(kind)->walk());
    REQUIRE_MESSAGE(pattern.isOk(), pattern.status().message());
    for (const char *arch : {"sm_90a", "sm_80"})
      for (int64_t headDim : {64, 128}) {
        KernelShape shape;
        shape.kind = *Kind::parse(kind);
        shape.arch = *findGpuArch(arch);
        shape.headDim = shape.valueDim = headDim;
        const KernelRequest request = makeRequest(*pattern, shape);
        auto config = defaultConfig(request);
        REQUIRE_MESSAGE(config.isOk(), config.status().message());
        auto skeleton = validateConfig(request, *config);
        REQUIRE_MESSAGE(skeleton.isOk(), skeleton.status().message());
        auto source = test::firstSource(*pattern, request, *config);
        REQUIRE_MESSAGE(source.isOk(), source.status().message());
        const auto layouts = layoutsOf(**skeleton, request);
        CAPTURE(std::string((*skeleton)->name()));
        CAPTURE(headDim);
        CHECK(layouts.size() > 1);
        const Status status = compile(typesOf(*source, layouts), arch).status();
        CHECK_MESSAGE(status.isOk(), status.message());
      }
  }
}
