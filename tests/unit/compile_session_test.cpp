// From prepared patterns to sources and records: sources depend on pattern and configuration only, variants
// compile from several threads, what is served while a search runs.
#include "support/Places.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Nvrtc/KernelSource.h"
#include "codegen/Nvrtc/NvrtcLibrary.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "codegen/Target/FindArch.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Session/Publish.h"
#include "runtime/Core/FieldText.h"
#include "runtime/Core/KernelImages.h"
#include "runtime/Core/LaunchPlan.h"
#include "tests/unit/scratch_fixture.h"
#include "support/FirstSource.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <thread>
#include <unistd.h>

using namespace heddle;

namespace {

std::unique_ptr<PatternFile> shipped(const std::string &name) {
  auto file = PatternFile::load(test::places().patterns + "/" + name + ".mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  return file.take();
}

PreparedPattern prepared(const std::string &name) {
  auto pattern = preparePattern(*shipped(name));
  REQUIRE_MESSAGE(pattern.isOk(), pattern.status().message());
  return pattern.take();
}

KernelRequest requestOf(const PreparedPattern &pattern) { return makeRequest(pattern, KernelShape()); }

bool hasNvrtc() {
  bool isThere = NvrtcLibrary::shared().isOk();
  if (!isThere)
    MESSAGE("skipped: " << NvrtcLibrary::shared().status().message());
  return isThere;
}

const char *kAllPatterns[] = {"full", "causal", "sliding_window", "dilated", "dilated_window", "longformer", "longnet"};

} // namespace

TEST_CASE("the default is chained where one kernel keeps little of what it visits") {
  KernelShape portable, hopper;
  hopper.arch = *findGpuArch("sm_90a");
  for (const KernelShape &shape : {portable, hopper})
    for (const char *name : {"longvit_1k", "longnet", "longvit_32k", "causal"}) {
      CAPTURE(name);
      auto config = configFor(prepared(name), shape, "");
      REQUIRE_MESSAGE(config.isOk(), config.status().message());
      CHECK((config->text.find("chained_mib=256") != std::string::npos) == (std::string(name) == "longvit_1k"));
    }
}

TEST_CASE("calls that share a filed default are given the same one, whoever asks first") {
  const PreparedPattern causal = prepared("causal");
  KernelShape shape;
  shape.arch = *findGpuArch("sm_90a");
  for (DType dtype : {DType::bf16, DType::e4m3})
    for (int64_t dim : {64, 128, 240})
      for (int64_t queries : {1, 63, 64, 65, 79, 128, 129, 150, 192, 200, 256, 257, 1000, 8191, 8192, 1 << 20}) {
        CAPTURE(dtypeName(dtype));
        CAPTURE(dim);
        CAPTURE(queries);
        shape.elements = CallElements(dtype);
        shape.headDim = shape.valueDim = dim;
        shape.queryRows = queries;
        auto own = configFor(causal, shape, "");
        shape.queryRows = ProblemBucket::rowsOfDefault(queries, shape);
        auto filed = configFor(causal, shape, "");
        REQUIRE_MESSAGE(own.isOk(), own.status().message());
        REQUIRE(filed.isOk());
        CHECK(own->text == filed->text);
      }
}

TEST_CASE("a preparation for defaults makes functions of passes only where the default chains them") {
  for (const char *name : {"longvit_1k", "longnet"}) {
    CAPTURE(name);
    auto file = shipped(name);
    auto all = preparePattern(*file), ofDefaults = preparePattern(*file, PassFunctions::ofDefaults);
    REQUIRE(all.isOk());
    REQUIRE(ofDefaults.isOk());
    const bool isChained = std::string(name) == "longvit_1k";
    CHECK(ofDefaults->passFunctions == (isChained ? all->passFunctions : std::vector<PatternText>()));
    CHECK(ofDefaults->functions == all->functions);
    auto sources = variantSources(*ofDefaults, KernelShape(), ""),
         sourcesOfAll = variantSources(*all, KernelShape(), "");
    REQUIRE(sources.isOk());
    CHECK(sources->size() == sourcesOfAll->size());
    CHECK((*sources)[0].text == (*sourcesOfAll)[0].text);
    auto chained = variantSources(*ofDefaults, KernelShape(), "chained_mib=32");
    CHECK(chained.isOk() == isChained);
    if (!isChained)
      CHECK(chained.status().message() == "pattern 'longnet' was prepared for defaults, which do not chain its passes");
  }
}

TEST_CASE("chained passes are sources of their own, and one record of several codes") {
  PreparedPattern pattern = prepared("longnet");
  REQUIRE(pattern.rates->passes.size() == 2);
  CHECK(pattern.passFunctions.size() == 2);
  CHECK(pattern.rates->passes[0].variants[0].queryRate == 2);
  CHECK(pattern.rates->passes[1].variants[0].queryRate == 1);
  auto fused = variantSources(pattern, KernelShape(), ""),
       chained = variantSources(pattern, KernelShape(), "chained_mib=32");
  REQUIRE(chained.isOk());
  REQUIRE(chained->size() == 2);
  REQUIRE(fused->size() == 1);
  CHECK((*chained)[0].text.find("kOutFloat32 = 1;") != std::string::npos);
  CHECK((*chained)[1].text.find("kOutFloat32 = 0;") != std::string::npos);
  CHECK((*chained)[1].text.find("kChainedMib = 32;") != std::string::npos);
  CHECK(fused->front().text == test::firstSource(pattern, KernelShape(), "")->text);
  if (!hasNvrtc())
    return;
  auto one = compileVariant(pattern, KernelShape(), ""), two = compileVariant(pattern, KernelShape(), "chained_mib=32");
  REQUIRE_MESSAGE(two.isOk(), two.status().str());
  CHECK(two->record.contentKey.size() == one->record.contentKey.size());
  CHECK(two->record.contentKey != one->record.contentKey);
  CHECK(LaunchPlan::parse(two->record.plan)->launches.size() == 2);
  auto images = splitImages(two->record.cubin, 2), texts = splitImages(two->record.ptx, 2);
  REQUIRE(images.isOk());
  REQUIRE(texts.isOk());
  for (int i : {0, 1}) {
    CHECK((*images)[i].substr(0, 4) == "\x7f"
                                       "ELF");
    CHECK((*texts)[i].find(".entry heddle_kernel") != std::string::npos);
  }
}

TEST_CASE("kernels with exact products of floats bound scores by a tanh of all digits, the others by a fast one") {
  auto file = shipped("softcap");
  auto pattern = preparePattern(*file);
  REQUIRE(pattern.isOk());
  const auto callsTanh = [&](DType dtype, Precision precision) {
    KernelShape shape;
    shape.elements = CallElements(dtype, CallElements::outOf(dtype), precision);
    auto sources = variantSources(*pattern, shape, "");
    REQUIRE_MESSAGE(sources.isOk(), sources.status().message());
    return sources->front().text.find("tanhf(") != std::string::npos;
  };
  CHECK(callsTanh(DType::fp32, Precision::exact));
  CHECK(!callsTanh(DType::fp32, Precision::tf32));
  CHECK(!callsTanh(DType::bf16, Precision::exact));
}

TEST_CASE("every shipped pattern prepares, with stages timed in order") {
  for (const char *name : kAllPatterns) {
    CAPTURE(name);
    PreparedPattern pattern = prepared(name);
    CHECK(pattern.name == name);
    CHECK(pattern.digest.size() == 64);
    CHECK(pattern.note == "");
    CHECK(pattern.functions.usual.find("struct Pattern") != std::string::npos);
    std::vector<std::string> stages;
    for (const StageTime &time : pattern.times)
      stages.push_back(time.stage);
    CHECK(stages == std::vector<std::string>{"parse", "analyse", "schedule", "emit", "passes", "digest"});
  }
}

TEST_CASE("rates and sizes reach the request") {
  KernelRequest dilated = requestOf(prepared("dilated"));
  REQUIRE(dilated.variants.size() == 3);
  CHECK(dilated.variants[2].queryRate == 4);
  CHECK(dilated.variants[2].keyRates == std::vector<int64_t>{4});
  PreparedPattern longformer = prepared("longformer");
  CHECK(longformer.parameterNames == std::vector<std::string>{"half", "globals"});
  CHECK(requestOf(longformer).paramCount == 2);
  CHECK(requestOf(prepared("longnet")).branchCount() == 2);
}

TEST_CASE("patterns whose query tiles cost alike are known") {
  for (const char *name : {"full", "sliding_window", "dilated_window"})
    CHECK_MESSAGE(prepared(name).rates->balance.hasEqualTiles, name);
  for (const char *name : {"causal", "longformer", "dilated"}) // longer rows, global rows, head groups
    CHECK_MESSAGE(!prepared(name).rates->balance.hasEqualTiles, name);
}

TEST_CASE("patterns whose query tiles are short are known") {
  for (const char *name : {"sliding_window", "dilated_window", "dilated"})
    CHECK_MESSAGE(prepared(name).rates->balance.hasFewTiles, name);
  for (const char *name : {"full", "causal", "longformer"})
    CHECK_MESSAGE(!prepared(name).rates->balance.hasFewTiles, name);
  for (const char *name : {"full", "causal"})
    CHECK_MESSAGE(prepared(name).rates->balance.hasManyTiles, name);
  for (const char *name : {"sliding_window", "dilated", "longformer", "document"}) // global rows alone; nobody knows
    CHECK_MESSAGE(!prepared(name).rates->balance.hasManyTiles, name);
}

TEST_CASE("patterns whose query tiles keep some key tiles whole are known") {
  for (const char *name : {"full", "causal", "sliding_window", "dilated", "block_dilated", "random_blocks", "document"})
    CHECK_MESSAGE(prepared(name).rates->balance.hasWholeTiles, name);
  for (const char *name : {"dilated_tiny", "block_thinned", "bigbird_causal", "block_csr", "longnet_tiny"})
    CHECK_MESSAGE(!prepared(name).rates->balance.hasWholeTiles, name);
}

TEST_CASE("rows of large heads are anchored where tiles are whole and consumers take turns") {
  const auto softmaxOf = [](const char *name) {
    KernelShape shape;
    shape.arch = *findGpuArch("sm_90a");
    shape.headDim = shape.valueDim = 128;
    auto config = configFor(prepared(name), shape, "");
    REQUIRE_MESSAGE(config.isOk(), config.status().message());
    return config->text.substr(config->text.find("softmax="), 9);
  };
  for (const char *name :
       {"full", "dilated", "dilated_guide", "block_dilated", "random_blocks", "random_blocks_causal"})
    CHECK_MESSAGE(softmaxOf(name) == "softmax=1", name);
  for (const char *name :
       {"sliding_window", "dilated_window", "block_local", "block_thinned", "bigbird_causal", "softcap"})
    CHECK_MESSAGE(softmaxOf(name) == "softmax=0", name);
}

TEST_CASE("patterns with rows many times longer than the others are known") {
  CHECK(prepared("longformer").rates->balance.hasLongRows);
  for (const char *name : {"longformer", "bigbird", "bigbird_causal", "block_global", "streaming"})
    CHECK_MESSAGE(prepared(name).rates->balance.firstKeysAreLong, name);
  for (const char *name : {"causal", "full", "sliding_window", "dilated", "longnet", "random_blocks"})
    CHECK_MESSAGE(!prepared(name).rates->balance.firstKeysAreLong, name);
  CHECK(!prepared("longformer").rates->balance.longRowsAreLast);
  for (const char *name : {"full", "causal", "sliding_window", "dilated_window", "dilated", "longnet"})
    CHECK_MESSAGE(!prepared(name).rates->balance.hasLongRows, name);
}

TEST_CASE("long rows begin first, at whichever end of the sequence they lie") {
  for (const char *rows : {"[64, 0]", "[0, 64]"}) {
    const std::string text = "attn.pattern @global_rows() {\n  %w = attn.window [256, 256]\n  %r = attn.rows " +
                             std::string(rows) + "\n  %m = attn.or %w, %r\n  attn.softmax union(%m)\n}\n";
    auto file = PatternFile::parse(text, "global_rows.mlir");
    REQUIRE_MESSAGE(file.isOk(), file.status().message());
    auto pattern = preparePattern(**file);
    REQUIRE(pattern.isOk());
    const TileBalance &balance = pattern->rates->balance;
    CHECK(balance.hasLongRows);
    CHECK(balance.longRowsAreLast == (rows[1] == '0'));
    KernelShape portable, hopper;
    hopper.arch = *findGpuArch("sm_90a");
    for (const KernelShape &shape : {portable, hopper}) {
      auto config = configFor(*pattern, shape, "");
      REQUIRE_MESSAGE(config.isOk(), config.status().message());
      CHECK_MESSAGE(config->text.find("raster_reversed=" + std::to_string(balance.longRowsAreLast)) !=
                        std::string::npos,
                    config->text);
    }
  }
}

TEST_CASE("patterns whose rows want other keys than their neighbours are known") {
  for (const char *name : {"random_blocks", "bigbird", "block_dilated"})
    CHECK_MESSAGE(prepared(name).rates->balance.hasOwnKeys, name);
  for (const char *name : {"full", "causal", "sliding_window", "block_strided", "block_window"})
    CHECK_MESSAGE(!prepared(name).rates->balance.hasOwnKeys, name);
}

TEST_CASE("patterns whose keys are those of lists are known, of a rule and in tensors") {
  for (const char *name : {"random_blocks", "bigbird_causal", "block_csr", "block_topk"})
    CHECK_MESSAGE(prepared(name).rates->hasLists, name);
  for (const char *name : {"full", "document", "block_strided", "longnet"})
    CHECK_MESSAGE(!prepared(name).rates->hasLists, name);
}

TEST_CASE("kernels of blocks rely on where key 0 stands only if the pattern fixes query 0") {
  auto stepOf = [](const std::string &origin) {
    auto file = PatternFile::parse("attn.pattern @p() " + origin +
                                       " { %w = attn.window [1, 1] %m = attn.blocks %w by [128] "
                                       "attn.softmax union(%m) }",
                                   "test.mlir");
    REQUIRE(file.isOk());
    auto pattern = preparePattern(**file);
    REQUIRE(pattern.isOk());
    KernelRequest request = requestOf(*pattern);
    return (*chooseSkeleton(request))->defaultPlan(request).serves.keyOriginStep;
  };
  CHECK(stepOf("") > 1);
  CHECK(stepOf("q_origin(end)") == 1);
  CHECK(stepOf("q_origin(given)") == 1);
}

TEST_CASE("equal pattern and configuration give equal bytes, another configuration other ones") {
  PreparedPattern first = prepared("sliding_window"), second = prepared("sliding_window");
  auto textOf = [](const PreparedPattern &pattern, const std::string &changes) {
    auto source = test::firstSource(pattern, KernelShape(), changes);
    REQUIRE_MESSAGE(source.isOk(), source.status().message());
    return source->text;
  };
  CHECK(textOf(first, "") == textOf(second, ""));
  CHECK(textOf(first, "rescale_threshold=0") != textOf(first, "rescale_threshold=8"));
}

TEST_CASE("families tell element types, dims and the type of out apart") {
  PreparedPattern pattern = prepared("full");
  KernelRequest request = requestOf(pattern);
  KernelFamily family = familyOf(pattern, request);
  CHECK(family.pattern == pattern.digest);
  CHECK(family.kind == "forward");
  CHECK(family.generator == kGenerator);
  request.elements.out = DType::fp32;
  CHECK(familyOf(pattern, request).kind == "forward_fp32_out");
}

TEST_CASE("variants compile to complete records, from several threads alike") {
  if (!hasNvrtc())
    return;
  PreparedPattern pattern = prepared("causal");
  std::vector<std::optional<Result<CompiledVariant>>> results(2);
  std::vector<std::thread> threads;
  for (auto &result : results)
    threads.emplace_back([&] { result = compileVariant(pattern, KernelShape(), ""); });
  for (std::thread &thread : threads)
    thread.join();
  for (auto &result : results)
    REQUIRE_MESSAGE(result->isOk(), result->status().message());
  const KernelRecord &record = (*results[0])->record;
  CHECK(record.contentKey == (*results[1])->record.contentKey);
  CHECK(record.cubin == (*results[1])->record.cubin);
  CHECK(record.cubin.substr(1, 3) == "ELF");
  CHECK(record.ptx.find(".entry heddle_kernel") != std::string::npos);
  CHECK(record.spillBytes == 0);
  CHECK(record.registers > 0);
  CHECK(record.sharedBytes > 0);
  CHECK(record.minDriver % 1000 == 0);
  CHECK(record.minDriver >= 12000);
  CHECK(summarizeConfig(record.config).isOk());
  CHECK(LaunchPlan::parse(record.plan).isOk());
  CHECK((*results[0])->times.size() == 3);
}

TEST_CASE("code that is known is not compiled again, and what is not the very code is") {
  if (!hasNvrtc())
    return;
  const PreparedPattern pattern = prepared("causal");
  const auto made = compileVariant(pattern, KernelShape(), "");
  REQUIRE_MESSAGE(made.isOk(), made.status().message());
  CHECK(!made->wasKnown);
  KernelRecord stored = made->record;
  stored.note = "of another pattern with the same text";
  std::vector<std::string> asked;
  const KnownKernels known = [&](const std::string &contentKey) {
    asked.push_back(contentKey);
    return contentKey == stored.contentKey ? Result<KernelRecord>(stored) : Status::notFound("none");
  };
  for (const char *changes : {"", kDefaultChanges}) {
    const auto again = compileVariant(pattern, KernelShape(), changes, 1, known);
    REQUIRE_MESSAGE(again.isOk(), again.status().message());
    CHECK(again->wasKnown);
    CHECK(fieldText(again->record) == fieldText(made->record));
  }
  CHECK(asked == std::vector<std::string>(2, made->record.contentKey));
  const auto other = compileVariant(pattern, KernelShape(), "raster_reversed=no", 1, known);
  REQUIRE_MESSAGE(other.isOk(), other.status().message());
  CHECK(!other->wasKnown);
  CHECK(asked.back() == other->record.contentKey);
  const KnownKernels broken = [](const std::string &) -> Result<KernelRecord> { return Status::corrupt("torn"); };
  CHECK(compileVariant(pattern, KernelShape(), "", 1, broken).status().code() == StatusCode::corrupt);
}

TEST_CASE("a record says which preferred skeleton was passed over, and why") {
  if (!hasNvrtc())
    return;
  PreparedPattern pattern = prepared("causal");
  KernelShape shape;
  shape.arch = *findGpuArch("sm_90a");
  PatternRates rates = *pattern.rates;
  for (int64_t rate = 2; rate <= 64; ++rate) // more tensor maps than a launch takes; no head uses them
    rates.variants.push_back({1, {rate}});
  pattern.rates = std::make_shared<const PatternRates>(std::move(rates));
  auto variant = compileVariant(pattern, shape, "");
  REQUIRE_MESSAGE(variant.isOk(), variant.status().message());
  const KernelRecord &record = variant->record;
  CHECK(summarizeConfig(record.config)->skeleton == "portable_forward");
  CHECK_MESSAGE(record.note.find("fallback: sm90_forward: the pattern's rates need 258 tensor maps") == 0, record.note);
}

TEST_CASE("six rates take more parameters than old drivers do, and a default that spills is noted") {
  if (!hasNvrtc())
    return;
  std::string text = "attn.pattern @six() {\n  %full = attn.full\n";
  for (int rate = 1; rate <= 6; ++rate)
    text += "  %g" + std::to_string(rate) + " = attn.dilate %full by " + std::to_string(rate) + " rule(group)\n";
  text += "  %m = attn.heads %g1, %g2, %g3, %g4, %g5, %g6\n  attn.softmax union(%m)\n}\n";
  auto file = PatternFile::parse(text, "six.mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  auto pattern = preparePattern(**file);
  REQUIRE_MESSAGE(pattern.isOk(), pattern.status().message());
  KernelShape shape;
  shape.arch = *findGpuArch("sm_90a");
  auto variant = compileVariant(*pattern, shape, "");
  REQUIRE_MESSAGE(variant.isOk(), variant.status().message());
  CHECK(summarizeConfig(variant->record.config)->skeleton == "sm90_forward");
  CHECK(variant->record.minDriver >= 12010);
  CHECK(variant->record.note.empty());
  // The portable default spills; the note says what was tried before.
  shape.arch = *findGpuArch("sm_90");
  auto portable = compileVariant(*pattern, shape, "");
  REQUIRE_MESSAGE(portable.isOk(), portable.status().message());
  CHECK_MESSAGE(portable->record.note.find("portable_forward (block_m=128") != std::string::npos,
                portable->record.note);
  const KernelRecord sideBySide = portable->record;
  for (int threads : {1, 3}) {
    portable = compileVariant(*pattern, shape, "", threads);
    REQUIRE_MESSAGE(portable.isOk(), portable.status().message());
    CHECK(portable->record.contentKey == sideBySide.contentKey);
    CHECK(portable->record.note == sideBySide.note);
  }
}

TEST_CASE("an untuned kernel is found by any GPU that runs it, under its name") {
  const test::ScratchFolder folder;
  const std::string path = folder / "session.db";
  PreparedPattern pattern = prepared("sliding_window");
  KernelRequest request = requestOf(pattern);
  KernelRecord record;
  static_cast<KernelFamily &>(record) = familyOf(pattern, request);
  record.contentKey = std::string(64, 'a');
  record.kernelArch = archName(*request.arch);
  record.cubin = "code";
  LaunchPlan plan{PlanService(Kind())};
  plan.launches.emplace_back();
  record.plan = plan.str();
  {
    StoreOptions options;
    options.mode = StoreMode::readWrite;
    auto store = Store::open(path, options);
    REQUIRE_MESSAGE(store.isOk(), store.status().message());
    CHECK(publishDefault(*store, record).isOk());
    CHECK(publishName(*store, pattern, "window").isOk());
    auto name = store->findName("window");
    REQUIRE(name.isOk());
    CHECK(name->pattern == pattern.digest);
    CHECK(name->parameters == "left");
    DeviceIdentity device{"GPU", archName(*request.arch), 108, 80};
    auto found = store->lookup(WinnerKey(familyOf(pattern, request), ProblemBucket(), device));
    REQUIRE(found.isOk());
    CHECK(found->match == MatchKind::untunedDefault);
    CHECK(found->record.contentKey == record.contentKey);

    KernelRecord ofFew = record; // chosen for calls of one query
    ofFew.contentKey = std::string(64, 'b');
    CHECK(publishDefault(*store, ofFew, 1).isOk());
    for (auto [queries, expected] : {std::pair<int64_t, char>(1, 'b'), {512, 'a'}, {1 << 20, 'a'}}) {
      const ProblemBucket bucket = ProblemBucket::of(1000, 108, 5000, 1, ProblemBucket::rowsBucket(queries, request));
      auto served = store->lookup(WinnerKey(familyOf(pattern, request), bucket, device));
      REQUIRE(served.isOk());
      CHECK(served->record.contentKey == std::string(64, expected));
    }
  }
}

TEST_CASE("while a search runs the portable default serves, unless something else does") {
  if (!hasNvrtc())
    return;
  const test::ScratchFolder folder;
  const std::string path = folder / "meanwhile.db";
  PreparedPattern pattern = prepared("causal");
  KernelRequest request = requestOf(pattern);
  request.arch = *findGpuArch("sm_90a");
  const LookupQuery wanted(
      WinnerKey(familyOf(pattern, request), ProblemBucket(), DeviceIdentity{"GPU", "sm_90", 132, 80}));
  {
    StoreOptions options;
    options.mode = StoreMode::readWrite;
    auto store = Store::open(path, options);
    REQUIRE_MESSAGE(store.isOk(), store.status().message());
    const Status served = publishProvisional(*store, pattern, request, wanted, "mine");
    REQUIRE_MESSAGE(served.isOk(), served.message());
    auto found = store->lookup(wanted);
    REQUIRE(found.isOk());
    CHECK(found->match == MatchKind::untunedDefault);
    CHECK(summarizeConfig(found->record.config)->skeleton == "portable_forward");
    CHECK(store->findName("mine")->pattern == pattern.digest);
    CHECK(publishProvisional(*store, pattern, request, wanted, "other").isOk());
    CHECK_FALSE(store->findName("other").isOk());
  }
}
