//===- document_items_test.cpp - tiles of documents of their own ----------===//
// Compiles the device's work items with the emitted functions of patterns over documents for the host and walks whole
// grids, as large as the launch plan says: every row belongs to exactly one CTA, whose rows lie in one document, from
// its first row on in steps of an item. Also where tensors break their rules: then rows still have one owner.
//===----------------------------------------------------------------------===//
#include "support/Places.h"
#include "codegen/Config/DocumentTiles.h"
#include "codegen/Config/ForwardConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Session/PreparedPattern.h"
#include "runtime/Core/LaunchExpr.h"
#include "support/HostCompiler.h"
#include "support/HostDevice.h"
#include "support/HostWorkItems.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <random>

using namespace heddle;

namespace {

const char *kAfter = R"(
// 0, or the number of the check that failed. begins: where documents begin, and behind them the number of rows.
extern "C" __attribute__((visibility("default"))) int check(int batch, int heads, int rows, int seqlenK, int qOrigin, int itemsOfHead, const int *begins, int documents,
                     const void *const *operands, const int *words) {
  HostKernel::Params p{};
  p.batch = batch; p.heads = heads; p.kvHeads = 1; p.seqlenQ = rows; p.seqlenK = seqlenK; p.qOrigin = qOrigin;
  for (int i = 0; i < Pattern::kOperandCount; ++i) p.operand[i] = operands[i];
  for (int i = 0; i < Pattern::kParamCount; ++i) p.param[i] = words[i];
  if (heddle::itemsPerHead<HostKernel>(p, rows) != itemsOfHead) return 1;
  std::vector<int> owners(batch * heads * rows);
  for (int index = 0; index < batch * heads * itemsOfHead; ++index) {
    heddle::WorkItem<HostKernel> item{};
    if (!heddle::decodeWorkItem(p, index, item)) continue;
    if (item.batch >= batch || item.head >= heads || item.queryRate != 1) return 3;
    if (item.endRow(p) > rows) return 4;
    if (item.firstRow > item.lastRow || item.lastRow - item.firstRow >= BLOCK_M || item.lastRow >= item.endRow(p)) return 5;
    heddle::WorkItem<HostKernel> again{}; // as the header brings it to consumers
    if (again.rateOfWord(item.wordOfRate(item.queryRate)) != 1 || again.endRow(p) != item.endRow(p)) return 6;
    for (int row = item.firstRow; row <= item.lastRow; ++row) ++owners[(item.batch * heads + item.head) * rows + row];
    if (!begins) continue;
    const int document = int(std::upper_bound(begins, begins + documents + 1, item.firstRow) - begins) - 1;
    if (begins[document + 1] != item.endRow(p) || (item.firstRow - begins[document]) % BLOCK_M) return 7;
    if (item.lastRow + 1 < item.endRow(p) && item.lastRow - item.firstRow + 1 != BLOCK_M) return 8;
  }
  for (int count : owners)
    if (count != 1) return 9;
  return 0;
}
)";

using Check = int (*)(int, int, int, int, int, int, const int *, int, const void *const *, const int *);

/// A library of the pattern's work items.
class Items {
public:
  Items(const PreparedPattern &prepared, int blockM, int reversed)
      : rows(blockM), library(sourceOf(prepared, blockM, reversed)) {
    library.find("check", check);
  }

  const int rows; ///< of an item
  Check check = nullptr;

private:
  static test::HostText sourceOf(const PreparedPattern &prepared, int blockM, int reversed) {
    test::HostText source;
    source.text =
        std::string(test::kHostDevice) + test::kHostItemTraits + prepared.functions.usual + test::kHostItems + kAfter;
    source.flags = "-w -I" + test::places().source + " -DBLOCK_M=" + std::to_string(blockM) +
                   " -DREVERSED=" + std::to_string(reversed) + " -DDOCUMENT_TILES=1";
    return source;
  }

  test::HostLibrary library;
};

using Entries = std::vector<int32_t>;

PreparedPattern prepared(Result<std::unique_ptr<PatternFile>> file) {
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  auto result = preparePattern(**file);
  REQUIRE(result.isOk());
  return result.take();
}

PreparedPattern parsed(const std::string &text) { return prepared(PatternFile::parse(text, "documents.mlir")); }
PreparedPattern library(const std::string &name) {
  return prepared(PatternFile::load(test::places().source + "/patterns/" + name + ".mlir"));
}

const char *kPart = R"(attn.pattern @part(%cu: memref<?xi32>) q_origin(given) {
  %c = attn.causal
  %m = attn.documents %c at %cu : memref<?xi32>
  attn.softmax union(%m)
})";

/// What the plan says for a call.
int64_t itemsOfHead(const PreparedPattern &pattern, int64_t rowsOfItem, int64_t seqlen,
                    const std::vector<int64_t> &params) {
  KernelRequest request = makeRequest(pattern, KernelShape());
  ForwardConfig config;
  config.documentTiles = 1;
  LaunchSymbols symbols;
  symbols[LaunchSymbol::seqlenQ] = seqlen;
  symbols.params = params.data();
  symbols.paramCount = int64_t(params.size());
  auto items = itemsOfHead(request, config, rowsOfItem).evaluate(symbols);
  REQUIRE(items.isOk());
  return *items;
}

/// Offsets of all tensors of the pattern, one of which may be shorter: those of the keys and the keys in use only
/// count.
struct Call {
  Entries offsets;
  int64_t rows, qOrigin = 0;
  int64_t fewerKeys = 0;
};

int checkCall(const Items &items, const PreparedPattern &pattern, const Call &call, bool isLawful = true) {
  const Entries &offsets = call.offsets;
  std::vector<int64_t> params(pattern.rates->paramCount, 7); // sizes are not asked for
  Entries words;
  std::vector<const void *> operands;
  for (const OperandSlot &operand : pattern.rates->operands) {
    const bool isUsed = operand.argument == 2;
    params[operand.argument] = int64_t(offsets.size()) - isUsed - (operand.argument == 1 ? call.fewerKeys : 0);
    operands.push_back(offsets.data());
  }
  words.assign(params.begin(), params.end());
  Entries begins;
  for (int32_t offset : offsets)
    begins.push_back(std::clamp<int32_t>(offset - int32_t(call.qOrigin), 0, int32_t(call.rows)));
  begins.resize(offsets.size() - call.fewerKeys);
  begins.front() = 0;
  begins.back() = int32_t(call.rows);
  const int perHead = int(itemsOfHead(pattern, items.rows, call.rows, params));
  for (const auto &[batch, heads] : {std::pair{1, 1}, {2, 4}})
    if (int wrong =
            items.check(batch, heads, int(call.rows), int(call.rows), int(call.qOrigin), perHead,
                        isLawful ? begins.data() : nullptr, int(begins.size()) - 1, operands.data(), words.data()))
      return wrong;
  return 0;
}

Entries offsetsOf(const Entries &lengths) {
  Entries offsets = {0};
  for (int32_t length : lengths)
    offsets.push_back(offsets.back() + length);
  return offsets;
}

/// One document, empty ones, of one row, longer than a tile, of exactly a tile or one row more or less.
std::vector<Entries> lengthsToTry() {
  std::vector<Entries> result = {{1},
                                 {48},
                                 {1000},
                                 {0, 5},
                                 {5, 0},
                                 {0, 0, 0, 1},
                                 {1, 0, 0, 0},
                                 {48, 48, 48},
                                 {47, 49},
                                 {49, 47},
                                 {1, 1, 1, 1},
                                 {96, 1, 0, 1, 97},
                                 {0, 48, 0, 48, 0},
                                 {300, 2, 300}};
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    Entries lengths;
    for (int s = 0, count = 1 + int(random() % 40); s < count; ++s)
      lengths.push_back(random() % 4 ? int32_t(random() % (random() % 5 ? 60 : 260)) : 0);
    lengths.push_back(1);
    result.push_back(lengths);
  }
  return result;
}

} // namespace

TEST_CASE("documents have tiles of their own: every row belongs to one item, and no item to two documents") {
  const PreparedPattern patterns[] = {library("document"), library("document_window"), parsed(kPart)};
  const std::vector<Entries> lengths = lengthsToTry();
  for (const PreparedPattern &pattern : patterns)
    for (const auto &[blockM, reversed] : {std::pair{48, 1}, {16, 0}}) {
      const Items items(pattern, blockM, reversed);
      CAPTURE(pattern.name);
      CAPTURE(items.rows);
      for (const Entries &each : lengths) {
        const Entries offsets = offsetsOf(each);
        CHECK(checkCall(items, pattern, {offsets, offsets.back()}) == 0);
      }
    }
}

TEST_CASE("a call that sees a part of the documents has the tiles of what it sees") {
  const PreparedPattern pattern = parsed(kPart);
  const Items items(pattern, 16, 1);
  const Entries offsets = {0, 10, 10, 75, 76, 140, 300};
  for (int64_t origin : {0, 1, 9, 10, 11, 76, 139, 200, 299})
    for (int64_t rows : {1, 15, 16, 17, 60, 100})
      if (origin + rows <= offsets.back()) {
        CAPTURE(origin);
        CAPTURE(rows);
        CHECK(checkCall(items, pattern, {offsets, rows, origin}) == 0);
      }
}

TEST_CASE("tensors of different lengths count as the shortest, and rows that they leave out belong to the documents at "
          "the ends") {
  const PreparedPattern window = library("document_window"), causal = library("document");
  const Items items(window, 16, 0), ofCausal(causal, 16, 0);
  for (int64_t fewer : {0, 1, 2, 3})
    CHECK(checkCall(items, window, {{0, 20, 30, 64, 90}, 90, 0, fewer}) == 0);
  CHECK(checkCall(ofCausal, causal, {{5, 20, 30}, 90}) == 0);
  CHECK(checkCall(ofCausal, causal, {{0, 20, 130}, 90}) == 0);
  CHECK(checkCall(ofCausal, causal, {{-7, -3, 200}, 90}) == 0);
}

TEST_CASE("offsets that decrease leave no item with rows outside of the call") {
  const PreparedPattern pattern = library("document");
  const Items items(pattern, 16, 0);
  for (const Entries &offsets :
       {Entries{0, 50, 20, 90}, Entries{0, 2000000000, -2000000000, 90}, Entries{90, 60, 30, 0}}) {
    const int wrong = checkCall(items, pattern, {offsets, 90}, /*isLawful=*/false);
    CHECK((wrong == 0 || wrong == 9)); // some rows may have no owner, or two
  }
}

TEST_CASE("patterns say how many documents their rows lie in, or why that is not known") {
  CHECK(library("document").rates->documents.str() == "max(add(param0,-1),1)");
  CHECK(library("document_window").rates->documents.str() == "max(min(add(min(param0,param1),-1),param2),1)");
  const PreparedPattern causal = library("causal");
  CHECK_FALSE(causal.rates->hasDocuments);
  CHECK(causal.rates->whyNoDocuments == "its rows do not lie in documents");
  CHECK(causal.functions.usual.find("documentRow") == std::string::npos);
  auto branches = [](const std::string &arguments, const std::string &other) {
    return parsed("attn.pattern @two(" + arguments + R"() {
      %c = attn.causal
      %m = attn.documents %c at %a : memref<?xi32>
      %n = attn.documents %c at )" +
                  other + R"(
      attn.softmax lse(%m, %n)
    })");
  };
  CHECK(branches("%a: memref<?xi32>, %b: memref<5xi32>", "%b : memref<5xi32>").rates->whyNoDocuments ==
        "its masks lay the rows into documents of different tensors");
  CHECK(branches("%a: memref<?xi32>", "%a : memref<?xi32>").rates->documents.str() == "max(add(param0,-1),1)");
  CHECK(branches("%a: memref<?xi32>, %b: memref<5xi32>", "%a, %b : memref<?xi32>, memref<5xi32>")
            .rates->documents.str() == "max(min(add(param0,-1),add(min(param0,5),-1)),1)");
  const PreparedPattern fixed = parsed(R"(attn.pattern @fixed(%a: memref<5xi32>) {
    %f = attn.full
    %m = attn.documents %f at %a : memref<5xi32>
    attn.softmax union(%m)
  })");
  CHECK(fixed.rates->documents.str() == "4");
}
