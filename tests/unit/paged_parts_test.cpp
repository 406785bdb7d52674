// Sequences whose keys lie in the caches of several ranks: each rank computes its part in fp32, with lse, where it stands in
// the whole, on the processors and by the decode kernel on the host. Parts are what the definition says of them, and
// together one call over all keys.
#include "support/PagedCall.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

using namespace heddle;
using namespace heddle::test;

namespace {

/// A kernel of a text, which needs no name.
Kernel kernelOf(const std::string &pattern) {
  Kernel kernel;
  kernel.pattern = pattern, kernel.kind = kDecode, kernel.out = DType::fp32;
  return kernel;
}

/// The text of the pattern whose calls are parts; nothing: why there is none, or why it is not of decode.
std::optional<std::string> partOf(const PatternFile &file) {
  const Result<std::string> text = file.partText();
  const bool serves = text && whyNoPages(file.pattern()).empty() && !file.pattern().getSoftmax().hasSink();
  return serves ? std::optional(*text + "\n") : std::nullopt;
}

bool readsTensors(const PatternFile &file) {
  for (unsigned i = 0; i < file.pattern().getNumArguments(); ++i)
    if (file.pattern().isOperand(i))
      return true;
  return false;
}

/// Where the part of each rank begins, in pages and in the order of ranks, and where the last one ends; some have no keys.
std::vector<int> cutsOf(int keys, int ranks, int pageSize, std::mt19937 &random) {
  std::vector<int> cuts = {0};
  for (int rank = 1; rank < ranks; ++rank)
    cuts.push_back(int(random() % unsigned(keys / pageSize + 1)) * pageSize);
  std::sort(cuts.begin(), cuts.end());
  cuts.push_back(keys);
  return cuts;
}

using RunPart = std::function<RoleTensors(const PagedCall &)>;

/// A call over all keys of a pattern, and those of ranks that have its pages between them.
struct Ranks {
  Ranks(const Compiled &whole, const Compiled &part, PagedShape shape, int ranks) : whole(whole, shape) {
    std::mt19937 random(7);
    std::vector<std::vector<int>> cuts;
    for (int keys : shape.keys)
      cuts.push_back(cutsOf(keys, ranks, int(shape.pageSize), random));
    shape.out = DType::fp32;
    for (int rank = 0; rank < ranks; ++rank) {
      PagedShape own = shape;
      own.wholes = shape.keys;
      own.origins.clear();
      for (size_t sequence = 0; sequence < cuts.size(); ++sequence) {
        own.origins.push_back(cuts[sequence][size_t(rank)]);
        own.keys[sequence] = cuts[sequence][size_t(rank) + 1] - own.origins.back();
      }
      parts.push_back(std::make_unique<PagedCall>(part, own));
      takeCache(*parts.back());
    }
  }

  /// In the order of ranks, as heddle.distributed does it.
  RoleTensors merged(const RunPart &run) const {
    std::vector<RoleTensors> each;
    for (const auto &part : parts)
      each.push_back(run(*part));
    RoleTensors all = each.front();
    const int64_t dim = all.out.shape[3], heads = all.out.shape[2], rows = all.out.shape[1];
    for (int64_t i = 0; i < all.lse.elements(); ++i) { // [batch, heads, rows]
      const int64_t row = (i / rows / heads * rows + i % rows) * heads + i / rows % heads;
      double most = -INFINITY, weights = 0;
      for (const RoleTensors &part : each)
        most = std::max(most, double(part.lse.get(i)));
      const auto shareOf = [&](const RoleTensors &part) {
        return most == -INFINITY ? 0 : std::exp(part.lse.get(i) - most);
      };
      for (const RoleTensors &part : each)
        weights += shareOf(part);
      for (int64_t c = 0; c < dim; ++c) {
        double sum = 0;
        for (const RoleTensors &part : each)
          sum += shareOf(part) * part.out.get(row * dim + c);
        all.out.set(row * dim + c, weights ? sum / weights : sum);
      }
      all.lse.set(i, weights ? most + std::log(weights) : -INFINITY);
    }
    return all;
  }

  void check(const RunPart &run) const {
    for (const auto &part : parts)
      expectDefined(part->kindCall(), run(*part));
    oracle::KindCall call = whole.kindCall();
    call.outDType = DType::fp32;
    expectDefined(call, merged(run));
  }

  PagedCall whole;
  std::vector<std::unique_ptr<PagedCall>> parts;

private:
  static void expectDefined(const oracle::KindCall &call, const RoleTensors &results) {
    const oracle::KindReport report = oracle::verifyCall(call, results, 30);
    REQUIRE(report.roles.size() == 2);
    for (const oracle::RoleReport &role : report.roles) {
      INFO(role.name() << " batch " << role.worst.batch << " head " << role.worst.head << " row " << role.worst.row);
      CHECK(role.maxError <= role.allowedError);
    }
  }

  /// The pages of the whole, of which the table of the part names those behind its first key; and its tensors.
  void takeCache(PagedCall &part) const {
    for (Role role : {Role::q, Role::k, Role::v, Role::pageTable, Role::descaleK, Role::descaleV})
      part.inputs.of(role) = whole.inputs.of(role);
    AttentionSizes &sizes = part.inputs.sizes;
    sizes.pages = whole.inputs.sizes.pages, sizes.maxPages = whole.inputs.sizes.maxPages;
    for (int64_t sequence = 0; sequence < sizes.sequences; ++sequence)
      for (int64_t n = 0; n < sizes.maxPages; ++n) {
        const int64_t page = n + part.asked.origins[size_t(sequence)] / sizes.pageSize;
        part.inputs.pageTable.set(sequence * sizes.maxPages + n,
                                  page < sizes.maxPages ? whole.inputs.pageTable.get(sequence * sizes.maxPages + page)
                                                        : -1);
      }
    part.shape.operands = whole.shape.operands;
    std::copy(whole.shape.parameters.begin(), whole.shape.parameters.end(), part.shape.parameters.begin());
  }
};

PagedShape raggedOf(std::vector<int> rows, std::vector<int> keys, int64_t heads, int64_t kvHeads, int64_t pageSize) {
  PagedShape shape = shapeOf(std::move(rows), std::move(keys), heads, kvHeads, pageSize, /*isRagged=*/true);
  shape.headDim = shape.valueDim = 32;
  return shape;
}

RoleTensors onCpu(const PagedCall &call) { return call.onCpu(); }

/// A decode kernel of parts on the host.
struct PartKernel {
  explicit PartKernel(const std::string &name, Kernel given = kernelOf("")) {
    Kernel ofWhole = given;
    ofWhole.pattern = name;
    whole = std::make_unique<Compiled>(fileOf(ofWhole));
    given.pattern = partOf(*whole->file).value();
    part = std::make_unique<Compiled>(fileOf(given));
    code = compiled(given, *part->file);
  }

  void check(const PagedShape &shape, int ranks, int64_t processors) const {
    INFO(ranks << " ranks, page size " << shape.pageSize << ", " << processors << " processors");
    const Ranks all(*whole, *part, shape, ranks);
    all.check([&](const PagedCall &call) { return run(call, processors, BlockOrder::ascending); });
    const RoleTensors results = run(*all.parts.front(), processors, BlockOrder::ascending),
                      again = run(*all.parts.front(), processors, BlockOrder::descending);
    CHECK(again.out.data == results.out.data);
    CHECK(again.lse.data == results.lse.data);
  }

  RoleTensors run(const PagedCall &call, int64_t processors, BlockOrder order) const {
    RoleTensors results = call.resultsBefore(DType::fp32);
    code->run(call.hostCall(results, processors), order);
    return results;
  }

  std::unique_ptr<Compiled> whole, part;
  std::unique_ptr<HostKernel> code;
};

} // namespace

TEST_CASE("every pattern whose calls may be parts: ranks together are one call, each is its part") {
  int swept = 0;
  for (const std::string &path : libraryPatterns()) {
    std::unique_ptr<PatternFile> file = loaded(path);
    if (readsTensors(*file))
      continue;
    const std::optional<std::string> text = partOf(*file);
    if (!text)
      continue;
    INFO(path);
    const Compiled whole(std::move(file)), part(fileOf(kernelOf(*text)));
    for (int ranks : {2, 4})
      Ranks(whole, part, raggedOf({3, 1, 0, 9}, {150, 77, 20, 300}, 6, 2, ranks == 2 ? 16 : 1), ranks).check(onCpu);
    ++swept;
  }
  CHECK(swept >= 30);
}

TEST_CASE("one to four ranks, groups of heads, odd pages, sequences of one key and of none") {
  const Compiled whole(fileOf(kernelOf("streaming"))), part(fileOf(kernelOf(partOf(*whole.file).value())));
  for (int ranks : {1, 2, 3, 4})
    for (int64_t pageSize : {1, 3, 48})
      Ranks(whole, part, raggedOf({1, 70, 2, 1, 1}, {90, 170, 33, 1, 0}, 8, 1 << (ranks - 1), pageSize), ranks)
          .check(onCpu);
}

TEST_CASE("relative scores and tensors of the pattern are those of positions in the whole") {
  for (const char *name : {"relative_bias", "block_csr", "document"}) {
    INFO(name);
    const Compiled whole(fileOf(kernelOf(name))), part(fileOf(kernelOf(partOf(*whole.file).value())));
    PagedShape shape = raggedOf({3, 2}, {130, 130}, 4, 2, 16);
    shape.hasRowsForKeys = true;
    Ranks(whole, part, shape, 3).check(onCpu);
  }
}

TEST_CASE("without where parts stand a pattern of parts is that of the whole, bit by bit") {
  const Compiled whole(fileOf(kernelOf("longformer"))), part(fileOf(kernelOf(partOf(*whole.file).value())));
  const PagedShape shape = raggedOf({3, 1, 9}, {150, 77, 300}, 6, 2, 16);
  const PagedCall call(part, shape);
  const RoleTensors expected = PagedCall(whole, shape).onCpu(), results = call.onCpu();
  CHECK(results.out.data == expected.out.data);
  CHECK(results.lse.data == expected.lse.data);
}

TEST_CASE("types: e4m3 keys beside bf16, fp16") {
  const Compiled whole(fileOf(kernelOf("causal"))), part(fileOf(kernelOf(partOf(*whole.file).value())));
  PagedShape shape = raggedOf({1, 40, 5}, {90, 170, 64}, 6, 3, 16);
  shape.cached = DType::e4m3;
  Ranks(whole, part, shape, 3).check(onCpu);
  shape.cached = {}, shape.dtype = DType::fp16;
  Ranks(whole, part, shape, 2).check(onCpu);
}

TEST_CASE("the kernel: out in fp32 of a call over all keys") {
  Kernel given = kernelOf("causal");
  const Compiled whole(fileOf(given));
  const std::unique_ptr<HostKernel> code = compiled(given, *whole.file);
  PagedShape shape = raggedOf({3, 0, 1, 40}, {50, 70, 700, 129}, 6, 2, 16);
  shape.headDim = shape.valueDim = 64, shape.out = DType::fp32;
  const PagedCall call(whole, shape);
  RoleTensors results = call.resultsBefore(DType::fp32);
  code->run(call.hostCall(results, 3));
  for (const oracle::RoleReport &role : oracle::verifyCall(call.kindCall(), results, 40).roles)
    CHECK(role.maxError <= role.allowedError);
}

TEST_CASE("the kernel: parts of sequences, of one and of many rows, on few and on many blocks") {
  Kernel given = kernelOf("");
  given.headDim = given.valueDim = 32;
  const PartKernel causal("causal", given);
  for (int ranks : {1, 2, 4})
    causal.check(raggedOf({3, 0, 1, 40, 1}, {150, 70, 700, 129, 0}, 6, 2, ranks == 2 ? 16 : 1), ranks, 3);
  causal.check(raggedOf({1}, {1500}, 8, 1, 48), 2, 20);
  causal.check(raggedOf(std::vector<int>(40, 1), std::vector<int>(40, 90), 4, 1, 16), 2,
               3); // more than lanes of a warp
}

TEST_CASE("the kernel: windows, first keys, lattices, rows and columns from the end, scores") {
  const std::string ends = unionText("%w = attn.window [20, 0] %c = attn.cols [2, 3] %m = attn.or %w, %c");
  std::vector<std::string> names = {"streaming", "dilated", "longformer", ends};
  if (takesAll())
    names.insert(names.end(), {"alibi", "softcap", "longnet", "random_blocks", "bigbird", "prefix_lm", "sparse_fixed"});
  Kernel given = kernelOf("");
  given.headDim = given.valueDim = 32;
  for (const std::string &name : names) {
    INFO(name);
    PartKernel(name, given).check(raggedOf({3, 1, 9}, {150, 77, 300}, 6, 2, 16), 3, 3);
  }
}

TEST_CASE("the kernel: e4m3 keys, with scales of the rank's own sequences") {
  Kernel given = kernelOf("");
  given.arch = "sm_89", given.keys = DType::e4m3, given.headDim = given.valueDim = 64;
  PagedShape shape = raggedOf({1, 2, 40}, {100, 300, 129}, 8, 2, 16);
  shape.cached = DType::e4m3, shape.headDim = shape.valueDim = 64;
  PartKernel("causal", given).check(shape, 2, 3);
}

TEST_CASE("the kernel: a whole that ends before its part ends with it, and what is far is cut") {
  Kernel given = kernelOf("");
  given.headDim = given.valueDim = 32;
  const PartKernel causal("causal", given);
  PagedShape shape = raggedOf({2, 2}, {90, 33}, 4, 2, 16);
  shape.out = DType::fp32, shape.origins = {7, -5}, shape.wholes = {20, -1};
  const PagedCall odd(*causal.part, shape);
  shape.origins = {7, 0}, shape.wholes = {97, 33};
  const PagedCall cut(*causal.part, shape);
  CHECK(causal.run(odd, 3, BlockOrder::ascending).out.data == causal.run(cut, 3, BlockOrder::ascending).out.data);
}

TEST_CASE("the kernel of clusters: parts of few sequences") {
  Kernel given = kernelOf("");
  given.arch = "sm_90";
  PagedShape shape = raggedOf({2, 1}, {1500, 90}, 4, 2, 16);
  shape.headDim = shape.valueDim = 64;
  for (const char *name : {"causal", "streaming"})
    PartKernel(name, given).check(shape, 3, 64);
}
