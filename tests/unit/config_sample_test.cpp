// Configurations as text: typed in over a default, and the listed ones of a skeleton, of which each is feasible, is
// what its text says, and a seed fixes the order.
#include "support/Places.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Nvrtc/KernelSource.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "codegen/Target/FindArch.h"
#include "compiler/Session/ConfigSample.h"
#include "support/FirstSource.h"
#include "support/PreparedPatterns.h"

#include <doctest/doctest.h>

#include <set>

using namespace heddle;

namespace {

PreparedPattern prepared(const std::string &name) { return test::preparedFrom(test::places().patterns, name); }

KernelShape hopperShape() {
  KernelShape shape;
  shape.arch = *findGpuArch("sm_90a");
  return shape;
}

struct Listed {
  std::string skeleton;
  int64_t feasible;
  std::vector<ListedConfig> configs;
};

Listed listOf(const PreparedPattern &pattern, const std::string &skeleton, std::optional<SampleSize> sample,
              int64_t most = 1 << 30) {
  auto list = ConfigList::of(pattern, hopperShape(), skeleton);
  REQUIRE_MESSAGE(list.isOk(), list.status().message());
  Listed listed{list->skeleton(), list->feasible(), {}};
  auto keep = [&](const ListedConfig &config) { listed.configs.push_back(config); };
  REQUIRE((sample ? list->forEach(*sample, keep) : list->forEach(most, keep)).isOk());
  return listed;
}

std::vector<std::string> textsOf(const Listed &list) {
  std::vector<std::string> texts;
  for (const ListedConfig &config : list.configs)
    texts.push_back(config.changes);
  return texts;
}

KernelRequest baselineRequest(const PreparedPattern &pattern, int64_t headDim = 64) {
  KernelShape shape;
  shape.headDim = shape.valueDim = headDim;
  return makeRequest(pattern, shape);
}

} // namespace

TEST_CASE("every listed text is a feasible configuration of its skeleton") {
  for (const char *name : {"causal", "longnet"}) {
    const PreparedPattern pattern = prepared(name);
    const KernelRequest request = makeRequest(pattern, hopperShape());
    for (const Skeleton *skeleton : skeletonsOf(Kind())) {
      CAPTURE(skeleton->name());
      const Listed list = listOf(pattern, std::string(skeleton->name()), SampleSize{40, 7});
      CHECK(list.configs.size() == 40);
      for (const ListedConfig &listed : list.configs) {
        auto config = parseConfig(request, listed.changes);
        REQUIRE_MESSAGE(config.isOk(), config.status().message());
        CHECK(config->json() == listed.json);
        CHECK(config->skeleton() == skeleton->name());
        CHECK(validateConfig(request, *config).isOk());
      }
    }
  }
}

TEST_CASE("a seed fixes the order, and a larger sample begins with a smaller one") {
  const PreparedPattern pattern = prepared("causal");
  for (const Skeleton *skeleton : skeletonsOf(Kind())) {
    std::string name(skeleton->name());
    std::vector<std::string> few = textsOf(listOf(pattern, name, SampleSize{5, 7}));
    std::vector<std::string> more = textsOf(listOf(pattern, name, SampleSize{30, 7}));
    more.resize(5);
    CHECK(few == more);
    CHECK(textsOf(listOf(pattern, name, SampleSize{5, 8})) != few);
  }
}

TEST_CASE("without a sample, and with one that asks for too many, all are listed once") {
  const PreparedPattern pattern = prepared("full");
  const std::string smaller = "portable_forward"; // thousands, not hundreds of thousands
  const Listed all = listOf(pattern, smaller, {}), shuffled = listOf(pattern, smaller, SampleSize{1 << 30, 1});
  std::vector<std::string> texts = textsOf(all), mixed = textsOf(shuffled);
  CHECK(int64_t(texts.size()) == all.feasible);
  CHECK(std::set<std::string>(texts.begin(), texts.end()).size() == texts.size());
  CHECK(mixed != texts);
  CHECK(std::set<std::string>(mixed.begin(), mixed.end()) == std::set<std::string>(texts.begin(), texts.end()));
  CHECK(all.skeleton == smaller);
  std::vector<std::string> first = textsOf(listOf(pattern, smaller, {}, 7));
  CHECK(first == std::vector<std::string>(texts.begin(), texts.begin() + 7));
  CHECK(listOf(pattern, "", SampleSize{1, 1}).skeleton == skeletonsOf(Kind()).front()->name());
}

TEST_CASE("a typed-in field takes back what the default chose beside it, and no typed-in one") {
  KernelShape shape = hopperShape();
  shape.queryRows = 65; // few: the keys of the last round are cut
  const KernelRequest request = makeRequest(prepared("causal"), shape);
  REQUIRE(parseConfig(request, "")->valueOf("split_last") == 1);
  auto refusal = [&](const char *text) {
    KernelConfig config = *parseConfig(request, text);
    auto rejection = (*findSkeleton(config.skeleton()))->whyInfeasible(request, config);
    return rejection ? rejection->constraint : std::string();
  };
  for (const char *text : {"grid=0", "grid=3", "grid=1", "split_tiles=64", "block_m=64", "block_m=64,grid=0"}) {
    CAPTURE(text);
    CHECK(refusal(text).empty());
  }
  CHECK(refusal("grid=2") == "grid");
  CHECK(refusal("grid=0,split_last=1") == "splits");
  CHECK(refusal("split_last=1,split_tiles=64") == "splits");
  CHECK(refusal("block_m=64,turn_taking=1") == "turns");
}

TEST_CASE("an unknown skeleton is refused with those that exist") {
  auto list = ConfigList::of(prepared("full"), hopperShape(), "nothing");
  CHECK(list.status().code() == StatusCode::notFound);
  CHECK(list.status().message().find("portable_forward") != std::string::npos);
}

TEST_CASE("a typed-in configuration changes the default field by field") {
  KernelRequest request = baselineRequest(prepared("full"));
  auto base = defaultConfig(request);
  auto same = parseConfig(request, "");
  REQUIRE(same.isOk());
  CHECK(*same == *base);
  auto changed = parseConfig(request, "stages=1, block_m=64");
  REQUIRE(changed.isOk());
  CHECK(changed->valueOf("stages") == 1);
  CHECK(changed->valueOf("block_m") == 64);
  CHECK(changed->valueOf("warps") == base->valueOf("warps"));
  auto whole = parseConfig(request, base->str());
  REQUIRE(whole.isOk());
  CHECK(*whole == *base);
  CHECK(parseConfig(request, "block_q=64").status().code() == StatusCode::notFound);
  CHECK(parseConfig(request, "block_m=x").status().message() ==
        "expected block_m=NUMBER in the configuration, got 'block_m=x'");
  CHECK(*parseConfig(request, "overlap_scores=yes,raster_reversed=no") ==
        *parseConfig(request, "overlap_scores=1,raster_reversed=0"));
  CHECK(parseConfig(request, "document_tiles=owm").status().message() ==
        "expected document_tiles=NUMBER or one of packed, own in the configuration, got 'document_tiles=owm'");
  CHECK(parseConfig(request, "block_m").status().code() == StatusCode::invalidArgument);
}

TEST_CASE("what no skeleton serves is refused with what is served") {
  PreparedPattern pattern = prepared("full");
  auto config = defaultConfig(baselineRequest(pattern, 80));
  CHECK(config.status().code() == StatusCode::unsupported);
  CHECK(config.status().message().find("serves head dims 64 and 128, not 80") != std::string::npos);
  KernelRequest request = baselineRequest(pattern);
  auto infeasible = parseConfig(request, "block_m=17");
  REQUIRE(infeasible.isOk());
  CHECK(validateConfig(request, *infeasible).status().code() == StatusCode::unsupported);
  CHECK(test::firstSource(pattern, request, *infeasible).status().code() == StatusCode::unsupported);
  CHECK(compileVariant(pattern, request, *infeasible).status().code() == StatusCode::unsupported);
}

TEST_CASE("where the quantize kernel holds no pieces none are under way, unless somebody says so") {
  KernelRequest request;
  request.kind = {KindBase::quantize};
  request.arch = *findGpuArch("sm_90a");
  request.headDim = request.valueDim = 128;
  REQUIRE(defaultConfig(request)->valueOf("ahead") == 2);
  const KernelConfig config = *parseConfig(request, "slots=0,min_blocks=4,units=2");
  CHECK(config.valueOf("ahead") == 0);
  CHECK(validateConfig(request, config).isOk());
  CHECK(!validateConfig(request, *parseConfig(request, "slots=0,ahead=2")).isOk());
}
