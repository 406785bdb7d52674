// The search space that the tuner makes of a skeleton: its knobs, the constraints' reasons, and fields that follow
// from a knob without being one.
#include "codegen/Skeletons/Shared/ConfigSpace.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Target/FindArch.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Session/TuneSpace.h"
#include "runtime/Store/Store.h"
#include "tests/unit/store_fixture.h"
#include "tuner/Search/StoreSink.h"

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
  for (const Knob &knob : skeleton.knobs(request)) {
    const size_t place = *skeleton.fields().find(knob.name);
    text += (text.empty() ? "" : " ") + knob.name + "=" + skeleton.fields().list[place].spelled(config[place]);
  }
  auto point = space.parse(text);
  REQUIRE_MESSAGE(point.isOk(), point.status().message());
  return *point;
}

} // namespace

TEST_CASE("every skeleton has a space of its own that holds its default") {
  for (int64_t dim : {64, 128})
    for (const Skeleton *skeleton : skeletonsOf(Kind())) {
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

TEST_CASE(
    "the space of every head dim is neither empty nor unconstrained, of e4m3 neither, which has knobs of its own") {
  const std::pair<DType, int64_t> calls[] = {{DType::bf16, 8},   {DType::bf16, 64},  {DType::bf16, 128},
                                             {DType::bf16, 192}, {DType::bf16, 256}, {DType::e4m3, 128}};
  for (const auto &call : calls) {
    CAPTURE(call.second);
    const auto &[dtype, dim] = call;
    KernelRequest request = hopperRequest(dim);
    request.elements = CallElements(dtype);
    const tuner::SearchSpace space = spaceOf(request, sm90ForwardSkeleton());
    const auto all = space.enumerate();
    REQUIRE(all.isOk());
    MESSAGE("head_dim=" << dim << ": " << all->points.size() << " of " << all->examined << " are feasible");
    CHECK(all->points.size() >= 200);
    CHECK(all->points.size() < all->examined);
  }
}

namespace {

/// The text without the field, from before there was one: lines of records, words of trials.
std::string without(std::string text, const std::string &field, char separator) {
  text.insert(text.begin(), separator);
  const size_t begin = text.find(separator + field + "=");
  REQUIRE(begin != std::string::npos);
  const size_t end = std::min(text.find(separator, begin + 1), text.size());
  text.erase(begin, end - begin);
  return text.substr(text.empty() ? 0 : 1);
}

PreparedPattern preparedCausal() {
  auto file = PatternFile::parse("attn.pattern @p() { %m = attn.causal attn.softmax union(%m) }", "test.mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  auto prepared = preparePattern(**file);
  REQUIRE_MESSAGE(prepared.isOk(), prepared.status().message());
  return prepared.take();
}

} // namespace

TEST_CASE("records and trials from before a field are published, found again, and mean its default") {
  const auto space = TuneSpace::create(preparedCausal(), KernelShape(), "");
  REQUIRE_MESSAGE(space.isOk(), space.status().message());
  const TuneSpace &tuned = **space;
  const KernelConfig now = tuned.family().defaultConfig(tuned.request());
  const auto point = tuned.space().parse(tuned.defaultPoint());
  REQUIRE(point.isOk());
  const DeviceIdentity device{"GPU", archName(*tuned.request().arch), 108, 80};
  const WinnerKey key(familyOf(tuned.pattern(), KernelShape()), ProblemBucket(), device);
  size_t trials = 0;
  for (const ConfigField &field : tuned.family().fields().list) {
    CAPTURE(field.name);
    const test::ScratchFolder folder;
    auto store = Store::open(folder / "old.db", test::writing());
    REQUIRE_MESSAGE(store.isOk(), store.status().message());
    KernelRecord record;
    static_cast<KernelFamily &>(record) = familyOf(tuned.pattern(), KernelShape());
    record.contentKey = std::string(64, 'a');
    record.kernelArch = archName(*tuned.request().arch);
    record.cubin = "code";
    LaunchPlan plan{PlanService(Kind())};
    plan.launches.emplace_back();
    record.plan = plan.str();
    record.config = without(now.str(), field.name, '\n');
    Winner winner;
    static_cast<WinnerKey &>(winner) = key;
    winner.contentKey = record.contentKey;
    winner.isTuned = 1, winner.medianUs = 12;
    REQUIRE(store->publish(record, winner).isOk());
    const auto found = store->lookup(LookupQuery(key));
    REQUIRE(found.isOk());
    CHECK(found->match == MatchKind::exact);
    CHECK(found->record.config == record.config);
    KernelConfig expected = now;
    REQUIRE(expected.set(field.name, field.initial).isOk());
    const auto summary = summarizeConfig(found->record.config);
    REQUIRE_MESSAGE(summary.isOk(), summary.status().message());
    CHECK(summary->text == expected.str());
    CHECK(*tuned.pointOf(found->record.config) == *tuned.pointOf(expected.str()));

    const std::string text = tuned.space().text(*point);
    if (now.valueOf(field.name) != field.initial || (" " + text).find(" " + field.name + "=") == std::string::npos)
      continue;
    tuner::PointTrial trial;
    trial.point = *point;
    trial.config = text;
    trial.outcome = tuner::Outcome::measured;
    trial.medianUs = trial.minUs = 12, trial.samples = 3;
    Trial old = toRecord(tuned.space(), trial, key);
    old.config = without(text, field.name, ' ');
    REQUIRE(store->recordTrial(old).isOk());
    const auto known = tuner::StoreTrialSink(*store, key).known(tuned.space());
    REQUIRE_MESSAGE(known.isOk(), known.status().message());
    REQUIRE(known->size() == 1);
    CHECK(known->front().point == *point);
    ++trials;
  }
  CHECK(trials > 0);
}
