//===- skeleton_headers_test.cpp - device files that stand alone ------------===//
// Every device file compiles behind the traits and the pattern of a kernel, with no other device file before it: it
// includes what it uses. NVRTC needs no GPU.
//===----------------------------------------------------------------------===//
#include "support/Places.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Nvrtc/Compiler.h"
#include "codegen/Nvrtc/KernelSource.h"
#include "codegen/Nvrtc/NvrtcLibrary.h"
#include "codegen/Skeletons/Shared/EmbeddedSources.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Target/FindArch.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/PreparedPattern.h"
#include "support/FirstSource.h"

#include <doctest/doctest.h>

using namespace heddle;

namespace {

/// The source of a kernel less the include of its skeleton, which is the last line.
struct Beginning {
  KernelSource source;
  std::string arch;
};

Beginning beginningOf(const std::string &kind, const std::string &arch, const std::string &name = "longnet") {
  auto file = PatternFile::load(test::places().patterns + "/" + name + ".mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  const Walk walk = kind == "row_dot" ? Walk::both : Kind::parse(kind)->walk();
  auto pattern = preparePattern(**file, PassFunctions::ofDefaults, walk);
  REQUIRE_MESSAGE(pattern.isOk(), pattern.status().message());
  KernelShape shape;
  shape.kind = *Kind::parse(kind);
  shape.arch = *findGpuArch(arch);
  const KernelRequest request = makeRequest(*pattern, shape);
  auto config = defaultConfig(request);
  REQUIRE_MESSAGE(config.isOk(), config.status().message());
  auto source = test::firstSource(*pattern, request, *config);
  REQUIRE_MESSAGE(source.isOk(), source.status().message());
  source->text.erase(source->text.rfind("#include"));
  return {*source, arch};
}

Status compileBehind(const Beginning &beginning, const EmbeddedFile &header) {
  const bool hasKernel = header.text.find(kKernelEntry) != std::string_view::npos;
  KernelSource source = beginning.source;
  source.text += "#include \"" + std::string(header.name) + "\"\n";
  if (!hasKernel)
    source.text += "extern \"C\" __global__ void " + std::string(kKernelEntry) + "() {}\n";
  return compile(source, beginning.arch).status();
}

} // namespace

TEST_CASE("device files include what they use") {
  if (!NvrtcLibrary::shared().isOk()) {
    MESSAGE("skipped: " << NvrtcLibrary::shared().status().message());
    return;
  }
  const Beginning kernels[] = {beginningOf("forward", "sm_90a"), beginningOf("backward", "sm_90a"),
                               beginningOf("forward", "sm_80"),  beginningOf("backward", "sm_80"),
                               beginningOf("row_dot", "sm_80"),  beginningOf("decode", "sm_80"),
                               beginningOf("quantize", "sm_89"), beginningOf("cascade", "sm_80", "causal")};
  for (const EmbeddedFile &file : skeletonSources()) {
    Status status;
    for (const Beginning &kernel : kernels)
      if (status = compileBehind(kernel, file); status.isOk())
        break;
    CHECK_MESSAGE(status.isOk(), std::string(file.name) << ": " << status.message());
  }
}
