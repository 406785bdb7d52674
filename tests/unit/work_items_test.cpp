//===- work_items_test.cpp - who computes which rows ----------------------===//
// Compiles the device's work item decoding with the emitted functions of every pattern file for the host and walks the
// whole grid, also in rounds of rows: every row of every head belongs to exactly one CTA, and its tile names existing
// rows of its round.
//===----------------------------------------------------------------------===//
#include "support/LibraryFiles.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Session/PreparedPattern.h"
#include "support/HostCompiler.h"
#include "support/HostDevice.h"
#include "support/HostWorkItems.h"

#include <doctest/doctest.h>

#include <filesystem>

using namespace heddle;

namespace {

const char *kAfter = R"(
int check(int batch, int heads, int rows) {
  HostKernel::Params p{};
  p.batch = batch; p.heads = heads; p.kvHeads = 1; p.seqlenQ = rows; p.seqlenK = rows;
  for (int &size : p.param) size = 5;
  std::vector<int> owners(batch * heads * rows);
  int step = rows;
#if CHAINED
  step = 1; // rounds of chained passes
  for (int variant = 0; variant < Pattern::kVariantCount; ++variant) step = std::lcm(step, Pattern::queryRate(variant));
  step *= KernelTraits::kBlockM;
#endif
  for (int first = 0; first < rows; first += step) {
    int end = std::min(first + step, rows);
#if CHAINED
    p.roundFirst = first;
    p.roundRows = end - first;
#endif
    int items = batch * heads * heddle::itemsPerHead<HostKernel>(p, end - first);
    for (int index = 0; index < items; ++index) {
      heddle::WorkItem<HostKernel> item{};
      if (!heddle::decodeWorkItem(p, index, item)) continue;
      if (item.firstRow > item.lastRow || item.batch >= batch || item.head >= heads) return 1;
      if (item.firstRow < first || item.lastRow >= end) return 1;
      if ((item.lastRow - item.firstRow) / item.queryRate >= KernelTraits::kBlockM) return 1;
      for (int row = item.firstRow; row <= item.lastRow; row += item.queryRate)
        ++owners[(item.batch * heads + item.head) * rows + row];
    }
  }
  for (int count : owners)
    if (count != 1) { std::printf("batch %d heads %d rows %d: a row has %d owners\n", batch, heads, rows, count); return 1; }
  return 0;
}
int main() {
  for (int batch : {1, 2, 3})
    for (int heads : {1, 3, 8})
      for (int rows : {1, 2, 3, 47, 48, 49, 130, 257, 1000})
        if (check(batch, heads, rows)) return 1;
}
)";

struct Raster {
  int blockM, heads, reversed, chained = 0;
};

/// Exit code of the compiled program.
int compileAndRun(const PreparedPattern &prepared, Raster raster) {
  test::HostText source;
  source.text =
      std::string(test::kHostDevice) + test::kHostItemTraits + prepared.functions.usual + test::kHostItems + kAfter;
  source.flags = "-w -I" + test::places().source + " -DBLOCK_M=" + std::to_string(raster.blockM) +
                 " -DRASTER=" + std::to_string(raster.heads) + " -DREVERSED=" + std::to_string(raster.reversed) +
                 " -DCHAINED=" + std::to_string(raster.chained);
  source.headers["Ptx/warp.cuh"] = test::kHostWarp;
  return test::HostProgram(source).run();
}

} // namespace

TEST_CASE("every row belongs to exactly one work item") {
  for (const std::string &path : test::libraryPatterns()) {
    auto file = PatternFile::load(path);
    REQUIRE(file.isOk());
    auto prepared = preparePattern(**file);
    REQUIRE(prepared.isOk());
    CAPTURE(prepared->name);
    CHECK(compileAndRun(*prepared, {48, 8, 1}) == 0);
    CHECK(compileAndRun(*prepared, {128, 1, 0}) == 0);
    if (!prepared->passFunctions.empty())
      CHECK(compileAndRun(*prepared, {16, 8, 1, 1}) == 0);
  }
}
