// Requests, the field list of configurations, constraints and their reasons, defaults.
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Shared/ConfigSpace.h"
#include "codegen/Skeletons/Forward/PortableConfig.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "codegen/Target/FindArch.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <random>
#include <set>

using namespace heddle;

namespace {

KernelConfig numbered(const Skeleton &skeleton) {
  KernelConfig config(skeleton.fields());
  int64_t value = 3;
  for (const auto &[name, old] : config.coordinates())
    REQUIRE(config.set(name, value++).isOk());
  return config;
}

std::vector<KernelRequest> servedRequests() {
  std::vector<KernelRequest> requests;
  for (const std::string &name : gpuArchNames())
    for (DType dtype : {DType::bf16, DType::fp16})
      for (int64_t headDim : {64, 128})
        for (int64_t valueDim : {64, 128}) {
          KernelRequest request;
          request.arch = *findGpuArch(name);
          request.elements = CallElements(dtype);
          request.headDim = headDim;
          request.valueDim = valueDim;
          requests.push_back(request);
        }
  return requests;
}

PortableConfig portableDefault(const KernelRequest &request) {
  return portableForwardSkeleton().defaultConfig(request);
}

KernelRequest requestFor(const char *arch, int64_t dim) {
  KernelRequest request;
  request.arch = *findGpuArch(arch);
  request.headDim = request.valueDim = dim;
  return request;
}

} // namespace

TEST_CASE("every family's list round-trips through text and tells every field apart") {
  for (const Skeleton *skeleton : skeletonsOf(Kind())) {
    const KernelConfig config = numbered(*skeleton);
    const auto parsed = readConfig(config.str());
    REQUIRE_MESSAGE(parsed.isOk(), parsed.status().message());
    CHECK(*parsed == config);
    std::set<std::string> texts = {config.str()};
    for (const auto &[name, value] : config.coordinates()) {
      KernelConfig other = config;
      REQUIRE(other.set(name, value + 100).isOk());
      CHECK(*other.get(name) == value + 100);
      CHECK(other.valueOf(name) == value + 100);
      CHECK(texts.insert(other.str()).second);
      CHECK(*readConfig(other.str()) == other);
    }
  }
}

TEST_CASE("a text without a field means its default, so that texts from before a field are still read") {
  for (const Skeleton *skeleton : skeletonsOf(Kind())) {
    const KernelConfig config = numbered(*skeleton);
    for (const ConfigField &field : skeleton->fields().list) {
      CAPTURE(field.name);
      std::string text = config.str();
      const size_t begin = text.find("\n" + field.name + "=") + 1;
      text.erase(begin, text.find('\n', begin) + 1 - begin);
      const auto parsed = readConfig(text);
      REQUIRE_MESSAGE(parsed.isOk(), parsed.status().message());
      KernelConfig expected = config;
      REQUIRE(expected.set(field.name, field.initial).isOk());
      CHECK(*parsed == expected);
    }
    const KernelRequest request = requestFor("sm_90a", 64);
    const auto defaults = readConfig("skeleton=" + std::string(skeleton->name()));
    REQUIRE(defaults.isOk());
    CHECK(*defaults == KernelConfig(skeleton->fields()));
    CHECK_MESSAGE(!skeleton->whyInfeasible(request, *defaults), skeleton->whyInfeasible(request, *defaults)->str());
    for (const Knob &knob : skeleton->knobs(request)) // or trials from before a knob would be lost
      CHECK(std::count(knob.values.begin(), knob.values.end(), defaults->valueOf(knob.name)) == 1);
  }
}

TEST_CASE("families have fields of their own, and none of another's") {
  const auto names = [](const KernelConfig &config) {
    std::set<std::string> result;
    for (const auto &[name, value] : config.coordinates())
      result.insert(name);
    return result;
  };
  const std::set<std::string> portable = names(KernelConfig(portableForwardSkeleton().fields()));
  const std::set<std::string> hopper = names(KernelConfig(sm90ForwardSkeleton().fields()));
  for (const char *name : {"raster_heads", "query_in_registers", "chunk_n", "overlap_scores"})
    CHECK((portable.count(name) == 1 && hopper.count(name) == 0));
  for (const char *name : {"grid", "softmax", "split_last", "consumer_registers", "raster_mib"})
    CHECK((portable.count(name) == 0 && hopper.count(name) == 1));
  for (const Skeleton *skeleton : skeletonsOf(Kind())) {
    const KernelRequest request = requestFor("sm_90a", 64);
    const std::string traits = skeleton->traits(request, skeleton->defaultConfig(request));
    CHECK((traits.find("kRasterHeads") == std::string::npos) == (skeleton == &sm90ForwardSkeleton()));
    CHECK((traits.find("kSplitLast") == std::string::npos) == (skeleton == &portableForwardSkeleton()));
  }
}

TEST_CASE("text, JSON and summary list the fields in order") {
  const KernelConfig config = portableForwardSkeleton().defaultConfig(KernelRequest());
  CHECK(config.str().find("skeleton=portable_forward\nblock_m=128\nblock_n=64\n") == 0);
  CHECK(config.json().find("{\"skeleton\":\"portable_forward\",\"block_m\":128,\"block_n\":64,") == 0);
  CHECK(config.json().back() == '}');
  CHECK(config.summary().find("block_m=128 block_n=64 chunk_n=64 stages=2 warps=4") == 0);
}

TEST_CASE("a wrong configuration text is refused with its line") {
  const std::string good = numbered(portableForwardSkeleton()).str(), named = "skeleton=portable_forward\n";
  const auto message = [](const std::string &text) { return readConfig(text).status().message(); };
  CHECK(message(named + "block_m") == "configuration: line 2: expected name=value, got 'block_m'");
  CHECK(message(good + "block_m=1\n") == "configuration: line 16: block_m is given twice");
  CHECK(message(named + "block_q=1\n")
            .find("line 2: no configuration field 'block_q' of portable_forward; there is skeleton, block_m,") !=
        std::string::npos);
  CHECK(message(named + "grid=0\n").find("line 2: no configuration field 'grid' of portable_forward") !=
        std::string::npos);
  CHECK(message(named + "block_m=12x\n") == "configuration: line 2: expected a whole number for block_m, got '12x'");
  CHECK(message("block_m=\n" + named) == "configuration: line 1: expected a whole number for block_m, got ''");
  CHECK(message("skeleton=a\\n\n") == "no skeleton 'a\\n'; there is sm90_backward, sm90_forward, portable_backward, "
                                      "portable_cascade, portable_decode, portable_decode_invariant, portable_forward, "
                                      "quantize, quantize_rotated, row_dot");
  CHECK(message(named + "skeleton=sm90_forward\n") == "configuration: line 2: skeleton is given twice");
  CHECK(message("block_m=1\nmy_skeleton=a\n") == "configuration: field skeleton is missing");
  CHECK(KernelConfig::parse(sm90ForwardSkeleton().fields(), named).status().message() ==
        "configuration: line 1: expected a configuration of sm90_forward, got one of 'portable_forward'");
  CHECK(readConfig(good.substr(0, good.size() - 1)).isOk());
}

TEST_CASE("unknown fields are refused with the fields that exist") {
  KernelConfig config(sm90ForwardSkeleton().fields());
  CHECK(config.set("block_k", 1).code() == StatusCode::notFound);
  CHECK(config.set("skeleton", 1).code() == StatusCode::notFound);
  CHECK(config.get("nothing").status().message().find("block_m, block_n") != std::string::npos);
  CHECK(config.valueOf("raster_heads") == 0);
}

TEST_CASE("fields have one spelling on the device") {
  CHECK(deviceConstantName("block_m") == "kBlockM");
  CHECK(deviceConstantName("query_in_registers") == "kQueryInRegisters");
  CHECK(deviceConstantName("smem_stage_bytes_k") == "kSmemStageBytesK");
  const KernelRequest request = requestFor("sm_90a", 128);
  const std::string traits = portableForwardSkeleton().traits(request, portableDefault(request));
  CHECK(traits.find("struct KernelTraits {\n  static constexpr int kHeadDim = 128;\n") == 0);
  CHECK(traits.find("  static constexpr int kBlockM = 128;\n") != std::string::npos);
  CHECK(traits.find("  static constexpr int kSmemRowBytesV = 256;\n") != std::string::npos);
  TraitsPrinter printer;
  printer.array("kKeyRates", {1, 4});
  CHECK(printer.str() == "struct KernelTraits {\n  static constexpr int kKeyRates[2] = {1, 4};\n};\n");
  CHECK(traits == portableForwardSkeleton().traits(request, portableDefault(request)));
}

TEST_CASE("requests with impossible rates are refused") {
  KernelRequest request;
  CHECK(request.validate().isOk());
  request.variants = {{1, {1, 2}}, {2, {2}}};
  CHECK(request.validate().message() == "kernel request: variant 1: expected 2 key rates as variant 0 has, got 1");
  request.variants = {{0, {1}}};
  CHECK(request.validate().message() == "kernel request: variant 0: expected a query rate of at least 1, got 0");
  request.variants = {{1, {-2}}};
  CHECK(request.validate().message() == "kernel request: variant 0: expected key rates of at least 1, got -2");
  request.variants.clear();
  CHECK(request.validate().code() == StatusCode::invalidArgument);
  CHECK(chooseSkeleton(request).status().code() == StatusCode::invalidArgument);
}

TEST_CASE("a skeleton that does not serve a kind says what it serves") {
  KernelRequest request;
  request.kind = {KindBase::rowDot};
  CHECK((*chooseSkeleton(request))->name() == "row_dot");
  CHECK(portableForwardSkeleton().appliesTo(request).message() ==
        "portable_forward: serves the kind forward, not row_dot");
  request.valueDim = 68;
  CHECK(chooseSkeleton(request).status().message().find("row_dot: serves value dims that are multiples of 8") !=
        std::string::npos);
}

TEST_CASE("pieces of the quantize kernel are whole rows, heads of a pair of pieces fit the registers") {
  KernelRequest request;
  request.kind = {KindBase::quantize};
  request.headDim = request.valueDim = 512;
  const auto refused = [&](const char *field, int64_t value) {
    KernelConfig config = *defaultConfig(request);
    REQUIRE(config.set(field, value).isOk());
    return validateConfig(request, config).status().message();
  };
  CHECK(refused("warps", 1).find("rows: 1 warps take 256 elements at a time, a row has 512") == 0);
  CHECK(refused("units", 8)
            .find("registers: need at least 129 registers per thread, sm_80 leaves 128 with 2 blocks of 256 "
                  "threads") == 0);
  CHECK(refused("slots", 4).find("slots: 0 pieces under way of 4 in shared memory: there must be both") == 0);
  CHECK(refused("ahead", 2).find("slots: 2 pieces under way of 0 in shared memory: there must be both") == 0);
  CHECK(refused("min_blocks", 9).find("threads: 9 blocks of 256 threads, sm_80 allows 2048 threads") == 0);
}

TEST_CASE("pieces that the quantize kernel holds fit the shared memory of an SM's blocks") {
  KernelRequest request;
  request.kind = {KindBase::quantize};
  request.arch = *findGpuArch("sm_90a");
  request.headDim = request.valueDim = 128;
  KernelConfig config = *defaultConfig(request);
  for (const auto &[field, value] : {std::pair("units", 4), {"slots", 6}, {"ahead", 2}})
    REQUIRE(config.set(field, value).isOk());
  CHECK(validateConfig(request, config).isOk());
  REQUIRE(config.set("slots", 7).isOk());
  CHECK(validateConfig(request, config).status().message().find("smem: 2 blocks need ") == 0);
}

TEST_CASE("origin rules round-trip") {
  for (QOriginRule rule : {QOriginRule::start, QOriginRule::end, QOriginRule::given})
    CHECK(*parseQOriginRule(qOriginRuleName(rule)) == rule);
  CHECK(parseQOriginRule("middle").status().message() == "no q_origin rule 'middle'; there is start, end, given");
}

TEST_CASE("requests that no skeleton serves are refused with what works") {
  KernelRequest request;
  request.headDim = 80;
  const auto status = chooseSkeleton(request).status();
  CHECK(status.code() == StatusCode::unsupported);
  CHECK(status.message().find("head dims 64 and 128, not 80") != std::string::npos);
  request = KernelRequest();
  request.elements = CallElements(DType::fp32);
  request.headDim = 36;
  CHECK(chooseSkeleton(request).status().message().find("head dims of multiples of 8 up to 128, not 36 of fp32") !=
        std::string::npos);
  request.headDim = 40;
  CHECK((*chooseSkeleton(request))->name() == "portable_forward");
  request.elements = CallElements(DType::i32);
  CHECK(chooseSkeleton(request).status().message().find("bf16, fp16 and fp32, not i32") != std::string::npos);
  request = KernelRequest();
  request.elements = CallElements(DType::bf16);
  request.elements.v = DType::fp16;
  CHECK(chooseSkeleton(request).status().message().find("beside q of bf16 or fp16, not bf16, bf16 and fp16") !=
        std::string::npos);
  request.elements = CallElements(DType::bf16);
  request.elements.out = DType::fp16;
  CHECK(chooseSkeleton(request).status().message().find("out of the type of q or fp32, not fp16") != std::string::npos);
  request = KernelRequest();
  request.paramCount = 65;
  CHECK(chooseSkeleton(request).status().message().find("at most 64 run-time sizes, got 65") != std::string::npos);
}

TEST_CASE("a request falls to the next skeleton with the reasons of those that are made for the architecture") {
  KernelRequest request = requestFor("sm_90a", 64);
  CHECK((*chooseSkeleton(request))->name() == "sm90_forward");
  CHECK(whyPassedOver(request, sm90ForwardSkeleton()).empty());
  CHECK(whyPassedOver(request, portableForwardSkeleton()).empty());
  for (int64_t rate = 2; rate <= 64; ++rate)
    request.variants.push_back({1, {rate}});
  CHECK((*chooseSkeleton(request))->name() == "portable_forward");
  CHECK(whyPassedOver(request, portableForwardSkeleton()) ==
        "sm90_forward: the pattern's rates need 258 tensor maps, with 0 run-time sizes 33152 B of parameters, a "
        "launch takes 32704 B");
  request.arch = *findGpuArch("sm_90");
  CHECK((*chooseSkeleton(request))->name() == "portable_forward");
  CHECK(whyPassedOver(request, portableForwardSkeleton()).empty());
}

TEST_CASE("the default configuration is feasible for every request that is served") {
  for (const KernelRequest &request : servedRequests()) {
    CAPTURE(request.str());
    const auto config = defaultConfig(request);
    REQUIRE(config.isOk());
    const auto skeleton = validateConfig(request, *config);
    CHECK_MESSAGE(skeleton.isOk(), skeleton.status().message());
  }
}

TEST_CASE("a rejection names the constraint, the numbers and the configuration") {
  const KernelRequest request = requestFor("sm_86", 128);
  PortableConfig config = portableDefault(request);
  config.blockM = 256;
  config.warps = 8;
  config.stages = 3;
  const auto rejection = portableForwardSkeleton().whyInfeasible(request, config);
  REQUIRE(rejection.has_value());
  CHECK(rejection->str().find(
            "smem: need 139264 B, sm_86 allows 101376 B (block_m=256 block_n=48 chunk_n=48 stages=3") == 0);
  CHECK(validateConfig(request, config).status().message() == rejection->str());
}

TEST_CASE("every constraint refuses something, and says why") {
  struct Witness {
    const char *constraint;
    void (*spoil)(PortableConfig &);
    const char *reason;
  };
  const Witness witnesses[] = {
      {"ranges", [](PortableConfig &c) { c.warps = 0; }, "warps is 0, expected 1 to"},
      {"ranges", [](PortableConfig &c) { c.blockN = int64_t(1) << 62; }, "block_n is 4611686018427387904"},
      {"ranges", [](PortableConfig &c) { c.rescaleThreshold = 16; }, "rescale_threshold is 16, expected 0 to 15"},
      {"query_tile", [](PortableConfig &c) { c.blockM = 96; },
       "block_m is 96, expected a multiple of 16 rows for each of 4"},
      {"key_tile", [](PortableConfig &c) { c.chunkN = 24; }, "chunk_n is 24, expected a multiple of 16"},
      {"key_tile", [](PortableConfig &c) { c.blockN = 64; }, "block_n is 64, expected a multiple of chunk_n="},
      {"pipeline", [](PortableConfig &c) { c.stages = 1, c.chunkN = 16; }, "one stage wants chunk_n = block_n"},
      {"pipeline", [](PortableConfig &c) { c.overlapScores = 1, c.chunkN = 16; }, "overlap wants chunk_n = block_n"},
      {"threads", [](PortableConfig &c) { c.warps = 64, c.blockM = 1024; }, "need 2048 threads, sm_90a allows 1024"},
      {"threads", [](PortableConfig &c) { c.minBlocks = 33; }, "33 blocks of 128 threads"},
      {"smem", [](PortableConfig &c) { c.blockN = 240; }, "need 278528 B, sm_90a allows 232448 B"},
      {"portable_smem", [](PortableConfig &c) { c.stages = 3; }, "need 106496 B, the least of all GPUs is 101376 B"},
      {"smem_blocks", [](PortableConfig &c) { c.minBlocks = 3; },
       "3 blocks need 248832 B, an SM of sm_90a has 233472 B"},
      {"registers", [](PortableConfig &c) { c.blockM = 192; },
       "need at least 296 registers per thread, sm_90a leaves 255 with 1 blocks"},
      {"chained", [](PortableConfig &c) { c.chainedMib = 32; },
       "the pattern is computed in one pass: its passes are not known"},
      {"ranges", [](PortableConfig &c) { c.documentTiles = -1; }, "document_tiles is -1, expected 0 to 1"},
      {"document_tiles", [](PortableConfig &c) { c.documentTiles = 1; },
       "tiles cannot begin where documents do: the documents of the pattern are not known"},
  };
  const KernelRequest request = requestFor("sm_90a", 128);
  std::set<std::string> refused;
  for (const Witness &witness : witnesses) {
    CAPTURE(witness.constraint);
    PortableConfig config = portableDefault(request);
    witness.spoil(config);
    const auto rejection = portableForwardSkeleton().whyInfeasible(request, config);
    REQUIRE(rejection.has_value());
    CHECK(rejection->constraint == witness.constraint);
    CHECK_MESSAGE(rejection->reason.find(witness.reason) == 0, rejection->reason);
    refused.insert(rejection->constraint);
  }
  KernelRequest ofFloats = requestFor("sm_90a", 128);
  ofFloats.elements = CallElements(DType::fp32);
  PortableConfig held = portableDefault(ofFloats);
  CHECK(!portableForwardSkeleton().whyInfeasible(ofFloats, held));
  held.queryInRegisters = 1;
  refused.insert(portableForwardSkeleton().whyInfeasible(ofFloats, held)->constraint);
  CHECK(refused.count("query") == 1);
  CHECK(refused.size() == portableForwardSkeleton().constraints().size());
}

TEST_CASE("a configuration of another skeleton is refused") {
  const KernelRequest request;
  const KernelConfig config(sm90ForwardSkeleton().fields());
  CHECK(portableForwardSkeleton()
            .whyInfeasible(request, config)
            ->str()
            .find("skeleton: expected portable_forward, got 'sm90_forward'") == 0);
  CHECK(validateConfig(request, KernelConfig()).status().message() ==
        "no skeleton ''; there is sm90_backward, sm90_forward, portable_backward, portable_cascade, portable_decode, "
        "portable_decode_invariant, portable_forward, "
        "quantize, quantize_rotated, row_dot");
}

TEST_CASE("the search space is not empty, has no duplicates and holds the default") {
  for (const char *arch : {"sm_80", "sm_90a", "sm_120"})
    for (int64_t dim : {64, 128}) {
      const KernelRequest request = requestFor(arch, dim);
      const Skeleton &skeleton = portableForwardSkeleton();
      const ConfigSpace space(skeleton, request);
      size_t all = 0, feasible = 0, defaults = 0;
      std::set<std::string> names;
      space.forEach([&](const ConfigSpace::Point &point, const Rejection *rejection) {
        ++all;
        if (rejection)
          return;
        ++feasible;
        const KernelConfig config = space.configAt(point);
        names.insert(config.summary());
        CHECK((config == KernelConfig(portableDefault(request))) == (space.changesFromDefault(point) == 0));
        defaults += space.changesFromDefault(point) == 0;
      });
      MESSAGE(std::string(arch) << " head_dim=" << dim << ": " << feasible << " of " << all << " are feasible");
      CHECK(feasible >= 50);
      CHECK(feasible < all);
      CHECK(names.size() == feasible);
      CHECK(defaults == 1);
    }
}

TEST_CASE("all batch-invariant kernels of decode that calls may get sum keys alike") {
  const Skeleton &skeleton = *skeletonsOf(Kind{KindBase::decodeInvariant}).front();
  for (auto [keys, isOneRange] : {std::pair<DType, bool>(DType::bf16, true), {DType::bf16, false}, {DType::e4m3, true}})
    for (int64_t dim : {64, 128}) {
      KernelRequest few = requestFor("sm_90a", dim);
      few.kind = {KindBase::decodeInvariant};
      few.elements = CallElements(DType::bf16).withKeys(keys);
      few.consecutiveRate = isOneRange;
      KernelRequest many = few;
      many.balance.queries = 256;
      const KernelConfig ofFew = skeleton.defaultConfig(few), ofMany = skeleton.defaultConfig(many);
      for (const char *field : {"warps", "chunk_n", "rescale_threshold"})
        CHECK(ofFew.valueOf(field) == ofMany.valueOf(field));
      for (const KernelConfig &config : {ofFew, ofMany}) // parts have 128 keys, or those of a tile
        CHECK(skeleton.schedule(config).blockN <= 128);
      std::set<std::string> knobs;
      for (const Knob &knob : skeleton.knobs(few))
        knobs.insert(knob.name);
      CHECK((knobs.count("chunk_n") == 0 && knobs.count("rescale_threshold") == 0 && knobs.count("stages") == 1));
      CHECK(knobs.count("warps") == (keys == DType::bf16 && isOneRange));
      few.kind = {KindBase::decode};
      CHECK(skeletonsOf(few.kind).front()->knobs(few).size() == 7);
    }
}

TEST_CASE("groups of knobs judged apart say what the constraints say of the whole configuration") {
  std::mt19937_64 random(5);
  for (const Skeleton *skeleton : skeletonsOf(Kind()))
    for (DType dtype : {DType::bf16, DType::fp16, DType::e4m3})
      for (int64_t dim : {64, 128}) {
        KernelRequest request = requestFor("sm_90a", dim);
        request.elements = CallElements(dtype);
        if (!skeleton->appliesTo(request).isOk())
          continue;
        const ConfigSpace space(*skeleton, request);
        size_t feasible = 0;
        for (int i = 0; i < 4000; ++i) {
          ConfigSpace::Point point;
          for (const Knob &knob : space.knobs())
            point.push_back(random() % knob.values.size());
          const auto whole = skeleton->whyInfeasible(request, space.configAt(point));
          const Rejection *apart = space.refusal(point);
          feasible += !whole;
          CHECK((apart ? apart->constraint : "") == (whole ? whole->constraint : ""));
        }
        CHECK(feasible > 0);
      }
}

TEST_CASE("every knob is a field, has help, and its values ascend") {
  for (const Skeleton *skeleton : skeletonsOf(Kind()))
    for (const Knob &knob : skeleton->knobs(KernelRequest())) {
      CAPTURE(knob.name);
      CHECK(skeleton->fields().find(knob.name).isOk());
      CHECK(knob.help.size() > 10);
      CHECK(knob.values.size() >= 2);
      const ConfigField &field = skeleton->fields().list[*skeleton->fields().find(knob.name)];
      for (int64_t value : knob.values) {
        CHECK(field.read(field.spelled(value)) == value);
        CHECK(field.read(std::to_string(value)) == value);
        CHECK((field.names.empty() || field.spelled(value) != std::to_string(value)));
      }
      for (size_t i = 1; i < knob.values.size(); ++i)
        CHECK(knob.values[i - 1] < knob.values[i]);
    }
}

TEST_CASE("a field calls its values alike in all families that have it") {
  for (const Skeleton *skeleton : skeletons())
    for (const ConfigField &field : skeleton->fields().list)
      CHECK(findConfigField(field.name)->names == field.names);
  CHECK(findConfigField("reduce")->spelled(3) == "ordered");
  CHECK(findConfigField("reduce")->read("walk") == 2);
  CHECK(!findConfigField("reduce")->read("copies"));
  CHECK(findConfigField("grid")->spelled(2) == "2"); // no choice any more
  CHECK(!findConfigField("grid")->read(""));
  CHECK(findConfigField("block_m")->spelled(64) == "64");
  CHECK(!findConfigField("nothing"));
}
