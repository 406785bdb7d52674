// Kernels of e4m3 without a GPU: their whole text on the host, a thread at a time; results against the definition, of what the
// elements are with their scales, for heads and for blocks of rows. HEDDLE_TEST_ALL=1 takes all of the library.
#include "support/KernelOnHost.h"

#include <cstdlib>

using namespace heddle;
using namespace heddle::test;

namespace {

Kernel kernelOf(const std::string &pattern, int64_t scaleRows, int64_t headDim = 64, int64_t valueDim = 64,
                const std::string &changes = "", const Kind &kind = kForward) {
  Kernel kernel{pattern, headDim, valueDim, DType::e4m3, changes, kHopper, kind};
  kernel.scaleRows = scaleRows;
  return kernel;
}

/// A kernel and a pattern of which calls are made.
struct Forward {
  explicit Forward(const Kernel &kernel)
      : kernel(kernel), pattern(fileOf(kernel)), code(compiled(kernel, *pattern.file)) {}

  /// Scales are far from each other, so that one in the place of another does not go unseen.
  Call call(AttentionSizes sizes) const {
    sizes.headDim = kernel.headDim, sizes.valueDim = kernel.valueDim;
    Call made(pattern, sizes, DType::e4m3, false, kernel.kind, kernel.scaleRows);
    made.inputs.precision = kernel.precision;
    for (Role role : {Role::descaleQ, Role::descaleK}) {
      HostTensor &scales = made.inputs.of(role);
      for (int64_t i = 0; i < scales.elements(); ++i)
        scales.set(i, scales.get(i) * (i % 3 == 0 ? 1.0f : i % 3 == 1 ? 0.25f : 2.0f));
    }
    return made;
  }
  RoleTensors run(const Call &call) const { return forwardResults(*code, call); }
  oracle::KindReport verify(const Call &call, const RoleTensors &results) const {
    oracle::KindCall definition = call.kindCall();
    definition.outDType = DType::fp32;
    return oracle::verifyCall(definition, results, 100);
  }

  Kernel kernel;
  Compiled pattern;
  std::unique_ptr<HostKernel> code;
};

void check(const Kernel &kernel, const std::vector<AttentionSizes> &shapes) {
  INFO(kernel.kind.name() << " " << kernel.pattern << kernel.changes << " d " << kernel.headDim << " scale_rows "
                          << kernel.scaleRows << " " << precisionName(kernel.precision));
  const Forward forward(kernel);
  for (const AttentionSizes &sizes : shapes) {
    const Call call = forward.call(sizes);
    const oracle::KindReport report = forward.verify(call, forward.run(call));
    CHECK(report.roles.size() == 2);
    for (const oracle::RoleReport &role : report.roles) {
      INFO("q " << sizes.seqlenQ << " k " << sizes.seqlenK << ": " << role.name() << " " << role.worst.head << " "
                << role.worst.row);
      CHECK(role.maxError <= role.allowedError);
    }
  }
}

} // namespace

TEST_CASE("scales of heads: lengths, groups of heads, batches, head dims") {
  check(kernelOf("causal", 0), {sizesOf(1, 1, 2, 1), sizesOf(130, 90, 4, 2, 2), sizesOf(70, 350, 2, 2)});
  check(kernelOf("full", 0, 128, 48), {sizesOf(100, 200, 2, 1)});
}

TEST_CASE(
    "values that are turned over once: lengths, no keys, groups of heads, batches, head dims, sections of heads") {
  const std::string once = ",turn_values=1";
  check(kernelOf("causal", 0, 64, 64, once),
        {sizesOf(1, 1, 2, 1), sizesOf(130, 90, 4, 2, 2), sizesOf(70, 350, 2, 2), sizesOf(10, 1100, 1, 1)});
  check(kernelOf("causal", 64, 64, 64, once), {sizesOf(100, 257, 2, 1)});
  check(kernelOf("full", 0, 128, 48, once), {sizesOf(100, 200, 2, 1), sizesOf(3, 0, 1, 1)});
  check(kernelOf("full", 0, 80, 176, once), {sizesOf(60, 130, 2, 1)});
  check(kernelOf("full", 0, 64, 64, once + ",raster_mib=0"), {sizesOf(70, 130, 4, 2, 2), sizesOf(3, 40, 11, 11, 3)});
}

TEST_CASE(
    "values that are turned over once: who loads them waits for warps that are late, on whose time no bit depends") {
  for (const char *pattern : {"causal", "full"}) {
    const Forward forward(kernelOf(pattern, 0, 64, 64, ",turn_values=1,block_m=128,block_n=64,stages=3"));
    const Call call = forward.call(sizesOf(70, 330, 2, 2));
    CHECK(forwardResults(*forward.code, call, BlockOrder::lateWarps).out.data == forward.run(call).out.data);
  }
}

TEST_CASE("totals after every tile, after two, and where consumers exchange one after the other") {
  for (const char *changes :
       {",block_m=64,block_n=32,turn_taking=0,flush_tiles=1", ",block_m=128,block_n=32,flush_tiles=2",
        ",block_m=192,block_n=32,flush_tiles=3,softmax=1", ",block_m=128,block_n=32,flush_tiles=1,totals=1,grid=3",
        ",block_m=192,block_n=32,flush_tiles=2,totals=1,grid=3,softmax=1"})
    check(kernelOf("causal", 0, 64, 64, changes), {sizesOf(200, 330, 2, 1), sizesOf(70, 40, 1, 1)});
}

namespace {

void checkWide(const Kernel &kernel) {
  const Forward forward(kernel);
  for (float wider : {1.0f, 16.0f, 200.0f}) {
    INFO(kernel.pattern << kernel.changes << " scale_rows " << kernel.scaleRows << " wider " << wider << " "
                        << precisionName(kernel.precision));
    Call call = forward.call(sizesOf(300, 300, 2, 1));
    HostTensor &scales = call.inputs.of(Role::descaleQ);
    for (int64_t i = 0; i < scales.elements(); ++i)
      scales.set(i, scales.get(i) * wider);
    for (const oracle::RoleReport &role : forward.verify(call, forward.run(call)).roles) {
      INFO(role.name() << " " << role.worst.head << " " << role.worst.row);
      CHECK(role.maxError <= role.allowedError);
    }
  }
}

} // namespace

TEST_CASE("anchored weights that do not fit a byte, and scores that do not fit fp32 either") {
  for (int64_t rows : {int64_t(0), kScaleRows[0]})
    for (const std::string pattern : {"full", "causal", "sliding_window"})
      for (const std::string grid : {"1", "3"})
        checkWide(
            kernelOf(pattern, rows, 64, 64, ",block_m=128,block_n=32,stages=3,split_last=0,softmax=1,grid=" + grid));
}

TEST_CASE(
    "anchored weights behind a tile that moved the row maxima: as many as a tile has keys, all of them the largest") {
  constexpr int64_t kBefore = 128, kDim = 64;
  const Forward forward(kernelOf("causal", 0, kDim, kDim, ",block_m=128,block_n=128,stages=2,softmax=1"));
  Call call = forward.call(sizesOf(300, 300, 1, 1));
  HostTensor &q = call.inputs.of(Role::q), &k = call.inputs.of(Role::k);
  for (int64_t i = 0; i < q.elements(); ++i) {
    q.set(i, 1);
    k.set(i, i / kDim < kBefore ? -1.0f : 1.0f);
  }
  call.inputs.of(Role::descaleQ).set(0, 1), call.inputs.of(Role::descaleK).set(0, 0.5f); // scores of -4 and of 4
  for (const oracle::RoleReport &role : forward.verify(call, forward.run(call)).roles) {
    INFO(role.name() << " " << role.worst.row);
    CHECK(role.maxError <= role.allowedError);
  }
}

TEST_CASE("drawn inputs in one part and in three, where the largest weight so far is a power of two") {
  for (const char *parts : {",split_tiles=0", ",split_tiles=4"})
    check(kernelOf("full", 0, 64, 64,
                   std::string(",block_m=128,block_n=32,stages=3,split_last=0,grid=1,softmax=0,rescale_threshold=0") +
                       parts),
          {sizesOf(300, 300, 2, 1)});
}

TEST_CASE("scales of blocks of rows: lengths that end within blocks, groups of heads, batches, head dims") {
  for (int64_t rows : kScaleRows)
    check(kernelOf("causal", rows), {sizesOf(1, 1, 2, 1), sizesOf(130, 90, 4, 2, 2), sizesOf(70, 350, 2, 2)});
  check(kernelOf("full", 64, 128, 48), {sizesOf(300, 200, 2, 1)});
  if (takesAll())
    check(kernelOf("full", 128, 240, 240), {sizesOf(100, 200, 1, 1)});
}

TEST_CASE("scales of blocks of rows: tiles of keys that are shorter than blocks, longer, and that cross them") {
  for (const char *changes :
       {",block_m=128,block_n=96,stages=2", ",block_m=64,block_n=32,stages=2,turn_taking=0", ",block_n=128,stages=2"})
    check(kernelOf("causal", 64, 64, 64, changes), {sizesOf(200, 330, 2, 1)});
  check(kernelOf("full", 128, 64, 64, ",block_m=128,block_n=96,stages=2"), {sizesOf(150, 400, 1, 1)});
}

TEST_CASE("scales of blocks of rows: rows and keys at strides, lists, documents, chains of scores, sinks, branches") {
  std::vector<std::string> patterns = {"dilated", "longnet", "bigbird", "block_topk", "document", "softcap", "sink"};
  if (takesAll()) {
    patterns.clear();
    for (const std::string &path : libraryPatterns())
      patterns.push_back(std::filesystem::path(path).stem().string());
  }
  for (const std::string &pattern : patterns) {
    const std::string oneKernel = pattern == "longvit_1k" ? ",chained_mib=0" : "";
    check(kernelOf(pattern, 64, 64, 64, oneKernel),
          {pattern == "tree_decode" ? sizesOf(16, 150, 2, 1) : sizesOf(200, 200, 6, 2)});
  }
}

TEST_CASE(
    "lists: of one consumer to four, more keys than are noted at a time, tiles that cross blocks, items in parts") {
  const std::string one = ",min_blocks=1,stages=2", noTurns = one + ",turn_taking=0";
  check(kernelOf("random_blocks", 0, 64, 64, ",block_m=64,block_n=32" + noTurns), {sizesOf(3, 270000, 1, 1)});
  check(kernelOf("random_blocks", 0, 64, 64, ",block_m=128,block_n=96" + one), {sizesOf(150, 5000, 1, 1)});
  check(kernelOf("random_blocks", 0, 64, 64, ",block_m=256,block_n=32" + noTurns), {sizesOf(140, 140000, 1, 1)});
  check(kernelOf("bigbird", 0, 64, 64, ",block_m=192,block_n=64" + one), {sizesOf(400, 900, 2, 1)});
  check(kernelOf("block_topk", 0, 64, 64, ",block_m=192,block_n=64" + one), {sizesOf(333, 500, 2, 1)});
  check(kernelOf("random_blocks_causal", 0, 64, 64, ",block_m=256,block_n=32" + noTurns), {sizesOf(260, 9000, 1, 1)});
  check(kernelOf("bigbird", 0, 64, 64, ",block_m=128,block_n=32,split_tiles=4,grid=1" + noTurns),
        {sizesOf(100, 700, 1, 1)});
  check(kernelOf("block_topk", 0, 64, 64, ",block_m=128,block_n=64,split_last=1,grid=1" + one),
        {sizesOf(200, 500, 1, 1)});
}

TEST_CASE("scales of blocks of rows: documents with tiles of their own, items in parts") {
  check(kernelOf("document", 64, 64, 64, ",document_tiles=1"), {sizesOf(300, 300, 2, 1)});
  check(kernelOf("full", 64, 64, 64, ",block_m=128,block_n=32,split_tiles=4,grid=1"), {sizesOf(100, 700, 1, 1)});
}

TEST_CASE("equal scales of all blocks give what one scale of the head gives, no scales what scales of 1 give") {
  const Forward blocks(kernelOf("causal", 64)), heads(kernelOf("causal", 0));
  Call ofHeads = heads.call(sizesOf(150, 200, 2, 1)), ofBlocks = blocks.call(sizesOf(150, 200, 2, 1));
  REQUIRE(ofBlocks.inputs.descaleK.elements() == 4);
  const auto setAll = [](Call &call, float q, float k) {
    for (const auto &[role, value] : {std::pair(Role::descaleQ, q), {Role::descaleK, k}})
      for (int64_t i = 0; i < call.inputs.of(role).elements(); ++i)
        call.inputs.of(role).set(i, value);
  };
  setAll(ofHeads, 0.5f, 0.25f), setAll(ofBlocks, 0.5f, 0.25f); // powers of two, which round nothing
  CHECK(blocks.run(ofBlocks).out.data == heads.run(ofHeads).out.data);
  setAll(ofBlocks, 1, 1);
  const RoleTensors ofOnes = blocks.run(ofBlocks);
  ofBlocks.inputs.descaleQ = {}, ofBlocks.inputs.descaleK = {};
  CHECK(blocks.run(ofBlocks).out.data == ofOnes.out.data);
}

namespace {

Kernel keyMajor(const std::string &pattern, int64_t headDim = 64, int64_t valueDim = 64,
                const std::string &changes = "", int64_t scaleRows = 0) {
  return kernelOf(pattern, scaleRows, headDim, valueDim, changes, kForwardKeyMajor);
}

} // namespace

TEST_CASE("key-major values: lengths, groups of heads, batches, head dims") {
  check(keyMajor("causal"),
        {sizesOf(1, 1, 2, 1), sizesOf(130, 90, 4, 2, 2), sizesOf(70, 351, 2, 2), sizesOf(3, 2, 1, 1)});
  check(keyMajor("full", 128, 48), {sizesOf(100, 201, 2, 1)});
  check(keyMajor("full", 48, 128), {sizesOf(70, 129, 2, 1)});
  if (takesAll())
    check(keyMajor("full", 240, 240), {sizesOf(100, 203, 1, 1)});
}

TEST_CASE("key-major values: tiles of keys, with and without totals, items in parts, blocks of rows with scales") {
  for (const char *changes :
       {",block_m=128,block_n=96,stages=2", ",block_m=64,block_n=32,stages=3,turn_taking=0,flush_tiles=2",
        ",block_m=128,block_n=64,stages=2,flush_tiles=40,compact_mask=1",
        ",block_m=128,block_n=32,split_last=0,split_tiles=4,grid=1,turn_taking=0"})
    check(keyMajor("causal", 64, 64, changes), {sizesOf(200, 333, 2, 1)});
  for (int64_t rows : kScaleRows)
    check(keyMajor("causal", 64, 64, ",block_m=128,block_n=96,stages=2", rows), {sizesOf(200, 333, 2, 1)});
  check(keyMajor("softcap", 64, 64, "", 64), {sizesOf(150, 300, 2, 1)});
}

TEST_CASE("key-major values: lists, documents, chains of scores, sinks, windows") {
  for (const char *pattern : {"bigbird", "block_topk", "document", "softcap", "sink", "sliding_window", "alibi"})
    if (std::filesystem::exists(test::places().patterns + "/" + pattern + ".mlir"))
      check(keyMajor(pattern), {sizesOf(200, 200, 6, 2)});
}

TEST_CASE("what lies behind the keys of a key-major row never matters") {
  const Forward forward(keyMajor("full"));
  const Call call = forward.call(sizesOf(70, 77, 4, 2, 2));
  const AttentionSizes &s = call.inputs.sizes;
  const int64_t row = 96, head = 64 * row, batch = 2 * head;         // [batch, kv_heads, dim, row]
  std::vector<std::byte> padded(size_t(2 * batch), std::byte(0x7f)); // NaN
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t d = 0; d < s.valueDim; ++d)
      for (int64_t h = 0; h < s.kvHeads; ++h)
        for (int64_t key = 0; key < s.seqlenK; ++key)
          padded[size_t(b * batch + h * head + d * row + key)] =
              call.inputs.v.data[size_t(((b * s.valueDim + d) * s.kvHeads + h) * s.seqlenK + key)];
  RoleTensors results = resultsBefore(call.inputs, DType::fp32);
  HostCall host = hostCall(call, results, {});
  host.symbols[strideOf(Role::v, StrideDim::batch)] = batch;
  host.symbols[strideOf(Role::v, StrideDim::row)] = row;
  host.symbols[strideOf(Role::v, StrideDim::head)] = head;
  host.address = [&padded, dense = host.address](const PointerSource &source) -> const void * {
    const bool isValues = source.kind == PointerSource::Kind::role && Role(source.index) == Role::v;
    return isValues ? padded.data() : dense(source);
  };
  forward.code->run(host);
  CHECK(results.out.data == forward.run(call).out.data);
  for (const oracle::RoleReport &role : forward.verify(call, results).roles)
    CHECK(role.maxError <= role.allowedError);
}

namespace {

Kernel fast(Kernel kernel) {
  kernel.precision = Precision::fast;
  return kernel;
}

} // namespace

TEST_CASE("weights from bits: lengths, groups of heads, batches, head dims, key-major values, scales of blocks") {
  for (const std::string values : {"", ",turn_values=1"})
    check(fast(kernelOf("causal", 0, 64, 64, values)),
          {sizesOf(1, 1, 2, 1), sizesOf(130, 90, 4, 2, 2), sizesOf(70, 350, 2, 2)});
  check(fast(kernelOf("full", 0, 128, 48)), {sizesOf(100, 200, 2, 1), sizesOf(3, 0, 1, 1)});
  check(fast(kernelOf("causal", 64)), {sizesOf(130, 257, 2, 1)});
  check(fast(keyMajor("causal", 64, 48)), {sizesOf(1, 1, 2, 1), sizesOf(130, 91, 4, 2, 2)});
}

TEST_CASE("weights from bits: every softmax, with and without totals, items in parts") {
  for (const char *changes :
       {",block_m=128,block_n=64,stages=2,softmax=0", ",block_m=128,block_n=64,stages=2,softmax=0,rescale_threshold=0",
        ",block_m=128,block_n=64,stages=2,softmax=1", ",block_m=64,block_n=32,turn_taking=0,flush_tiles=1",
        ",block_m=128,block_n=32,flush_tiles=2,totals=1,grid=3,softmax=1",
        ",block_m=128,block_n=32,split_last=0,split_tiles=4,grid=1,turn_taking=0,rescale_threshold=0"})
    check(fast(kernelOf("full", 0, 64, 64, changes)), {sizesOf(200, 330, 2, 1), sizesOf(70, 40, 1, 1)});
}

TEST_CASE("weights from bits: lists, documents, chains of scores, sinks, windows, strides, branches") {
  for (const char *pattern :
       {"bigbird", "block_topk", "document", "softcap", "sink", "sliding_window", "dilated", "longnet"})
    check(fast(kernelOf(pattern, 0)), {sizesOf(200, 200, 6, 2)});
}

TEST_CASE("rows continue from those of an earlier call, of earlier keys and of later ones, which some have not") {
  const char *const changes[] = {"", ",turn_values=1", ",block_m=128,block_n=32,stages=3,softmax=1,flush_tiles=2",
                                 ",block_m=128,block_n=32,softmax=0,flush_tiles=1,totals=1,grid=3",
                                 ",block_m=128,block_n=32,split_last=0,split_tiles=4,grid=1,turn_taking=0"};
  for (const char *change : changes)
    for (Kernel kernel : {kernelOf("causal", 0, 64, 64, change), fast(kernelOf("causal", 0, 64, 64, change))}) {
      INFO(kernel.changes << " " << precisionName(kernel.precision));
      const Forward forward(kernel);
      const Call whole = forward.call(sizesOf(200, 330, 2, 1));
      const Call parts[] = {withKeys(whole, 0, 100), withKeys(whole, 100, 230)};
      for (int last : {1, 0}) {
        const RoleTensors before = forward.run(parts[1 - last]);
        Call second = parts[last];
        second.inputs.carryOut = before.out, second.inputs.carryLse = before.lse;
        for (const oracle::RoleReport &role : forward.verify(whole, forward.run(second)).roles) {
          INFO("last " << last << ": " << role.name() << " " << role.worst.head << " " << role.worst.row);
          CHECK(role.maxError <= role.allowedError);
        }
      }
    }
}

TEST_CASE("weights from bits that pass the largest e4m3, and all that halves hold") {
  for (const std::string pattern : {"full", "causal", "sliding_window"})
    checkWide(fast(kernelOf(pattern, 0, 64, 64, ",block_m=128,block_n=32,stages=3,split_last=0,softmax=1,grid=3")));
}

TEST_CASE("weights from bits: the mean of ones is 1, and NaN in a key is NaN in the rows that keep it and no others") {
  const Forward forward(fast(kernelOf("causal", 0, 64, 64, ",block_m=128,block_n=32,stages=3,softmax=1")));
  Call call = forward.call(sizesOf(300, 300, 2, 1));
  HostTensor &v = call.inputs.of(Role::v), &k = call.inputs.of(Role::k);
  for (int64_t i = 0; i < v.elements(); ++i)
    v.set(i, 1);
  call.inputs.of(Role::descaleV).set(0, 1);
  constexpr int64_t kBad = 201, kDim = 64;
  k.set(kBad * kDim + 3, NAN);
  const RoleTensors results = forward.run(call);
  for (int64_t i = 0; i < results.out.elements(); ++i) {
    const int64_t row = i / (2 * kDim);
    INFO("row " << row << ": " << results.out.get(i));
    CHECK((row < kBad ? results.out.get(i) == 1 : std::isnan(results.out.get(i))));
  }
}
