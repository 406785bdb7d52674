// The search space that the tuner makes of a skeleton: its knobs, the constraints' reasons, and fields that follow
// from a knob without being one.
#include "codegen/Skeletons/ConfigSpace.h"
#include "codegen/Skeletons/Registry.h"
#include "codegen/Target/FindArch.h"
#include "compiler/Session/TuneSpace.h"

#include <doctest/doctest.h>

using namespace heddle;

namespace {

KernelRequest hopperRequest(int64_t dim) {
  KernelRequest request;
  request.arch = *findGpuArch("sm_90a");
  request.headDim = request.valueDim = dim;
  return request;
}

tuner::SearchSpace spaceOf(const KernelRequest &request, const Skeleton &skeleton) {
  auto space = searchSpaceOf(skeleton, std::make_shared<const ConfigSpace>(skeleton, request));
  REQUIRE_MESSAGE(space.isOk(), space.status().message());
  return space.take();
}

/// The point of a configuration with one knob changed.
tuner::Point pointOf(const tuner::SearchSpace &space, const KernelRequest &request, const Skeleton &skeleton,
                     const std::string &changed, int64_t value) {
  KernelConfig config = skeleton.defaultConfig(request);
  REQUIRE(config.set(changed, value).isOk());
  std::string text;
  for (const Knob &knob : skeleton.knobs(request))
    text += (text.empty() ? "" : " ") + knob.name + "=" + spelling(knob, *config.get(knob.name));
  auto point = space.parse(text);
  REQUIRE_MESSAGE(point.isOk(), point.status().message());
  return *point;
}

} // namespace

TEST_CASE("every skeleton has a space of its own that holds its default") {
  for (int64_t dim : {64, 128})
    for (const Skeleton *skeleton : skeletonsOf("forward")) {
      const KernelRequest request = hopperRequest(dim);
      const tuner::SearchSpace space = spaceOf(request, *skeleton);
      CHECK(space.name() == skeleton->name());
      const KernelConfig base = skeleton->defaultConfig(request);
      const tuner::Point point = pointOf(space, request, *skeleton, "block_m", base.valueOf("block_m"));
      CHECK_FALSE(space.whyInfeasible(point).has_value());
    }
}

TEST_CASE("a text of one skeleton's space is none of the other's") {
  const KernelRequest request = hopperRequest(64);
  const tuner::SearchSpace ours = spaceOf(request, sm90ForwardSkeleton());
  const tuner::SearchSpace other = spaceOf(request, portableForwardSkeleton());
  const tuner::Point point = pointOf(ours, request, sm90ForwardSkeleton(), "stages", 2);
  CHECK_FALSE(other.parse(ours.text(point)).isOk());
}

TEST_CASE("threads and registers follow the block, so that a block is one step away") {
  const KernelRequest request = hopperRequest(64);
  const Skeleton &skeleton = sm90ForwardSkeleton();
  const tuner::SearchSpace space = spaceOf(request, skeleton);
  for (int64_t blockM : {128, 192, 256}) {
    CAPTURE(blockM);
    const auto reason = space.whyInfeasible(pointOf(space, request, skeleton, "block_m", blockM));
    CHECK_MESSAGE(!reason.has_value(), *reason);
  }
  const auto reason = space.whyInfeasible(pointOf(space, hopperRequest(64), skeleton, "block_n", 128));
  REQUIRE(reason.has_value());
  CHECK(reason->find("registers: scores and weights of 128 keys") == 0);
}

TEST_CASE("the space of every head dim is neither empty nor unconstrained") {
  for (int64_t dim : {8, 64, 128, 192, 256}) {
    CAPTURE(dim);
    const tuner::SearchSpace space = spaceOf(hopperRequest(dim), sm90ForwardSkeleton());
    const auto all = space.enumerate();
    REQUIRE(all.isOk());
    MESSAGE("head_dim=" << dim << ": " << all->points.size() << " of " << all->examined << " are feasible");
    CHECK(all->points.size() >= 200);
    CHECK(all->points.size() < all->examined);
  }
}
