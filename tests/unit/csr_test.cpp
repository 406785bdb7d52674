// attn.csr: tiles, counts, compiled functions and emitted text against the lists themselves, in blocks and alone, for
// each batch element and head; lists that are made and lists that are refused.
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Emit/EmitPattern.h"
#include "codegen/Emit/PatternInfo.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Pattern/PatternFunctions.h"
#include "compiler/Oracle/PatternOracle.h"
#include "support/AnalysisChecks.h"
#include "support/HostPattern.h"
#include "support/RangeCheck.h"
#include <doctest/doctest.h>
#include <algorithm>
#include <random>

using namespace heddle;
using namespace heddle::test;

namespace {

using Entries = std::vector<int32_t>;

/// Lists of `lists` times `rows` rows; any ascending indices below `cells`, some rows empty.
struct Lists {
  Entries offsets, indices;
  Lists(int64_t lists, int64_t rows, int32_t cells, unsigned seed) {
    std::mt19937 random(seed);
    for (int64_t list = 0; list < lists; ++list) {
      offsets.push_back(int32_t(indices.size()));
      for (int64_t row = 0; row < rows; ++row) {
        for (int32_t cell = 0; cell < cells && random() % 5; ++cell)
          if (random() % 3 == 0)
            indices.push_back(cell);
        offsets.push_back(int32_t(indices.size()));
      }
    }
    if (indices.empty())
      indices.push_back(0); // of no row
  }
};

std::string patternText(const std::string &more, const std::string &type = "memref<?x?x?xi32>",
                        const std::string &origin = "") {
  return "attn.pattern @p(%offsets: " + type + ", %indices: memref<?xi32>) " + origin +
         " {\n%l = attn.csr %offsets, %indices : " + type + ", memref<?xi32>\n" + more + "\nattn.softmax union(%m)\n}";
}

std::unique_ptr<PatternFile> parsed(const std::string &text) {
  auto file = PatternFile::parse(text, "csr.mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  return file.take();
}

struct Sizes {
  int64_t batch, heads, seqlenQ, seqlenK;
};

constexpr int64_t kCells = 24; // rows and key cells of a list, also beyond what there is

oracle::Problem problemOf(const PatternFile &file, Sizes sizes, unsigned seed) {
  attn::PatternOp pattern = file.pattern();
  auto type = llvm::cast<mlir::MemRefType>(pattern.getArgumentTypes()[0]);
  const int64_t batch = type.isDynamicDim(0) ? sizes.batch : 1, heads = type.isDynamicDim(1) ? sizes.heads : 1;
  const Lists lists(batch * heads, kCells, kCells, seed);
  oracle::Problem problem{sizes.heads, sizes.seqlenQ, sizes.seqlenK, 0, 0, {kCells + 1, int64_t(lists.indices.size())}};
  if (pattern.getQOrigin() == attn::Origin::end)
    problem.qOrigin = sizes.seqlenK - sizes.seqlenQ;
  problem.operands = {OperandTensor::integers({batch, heads, kCells + 1}, lists.offsets),
                      OperandTensor::integers({int64_t(lists.indices.size())}, lists.indices)};
  return problem;
}

const Sizes kCsrSizes[] = {{2, 3, 37, 37}, {1, 2, 20, 90}, {2, 1, 70, 9}, {1, 1, 1, 1}};

const char *const kMasks[] = {"%m = attn.blocks %l by [4]",
                              "%m = attn.and %l, %l",
                              "%b = attn.blocks %l by [7] %c = attn.causal %m = attn.and %b, %c",
                              "%b = attn.blocks %l by [4] %w = attn.window [3, 1] %m = attn.or %b, %w",
                              "%b = attn.blocks %l by [3] %m = attn.segment %b by [30]",
                              "%b = attn.blocks %l by [4] %m = attn.not %b",
                              "%b = attn.blocks %l by [2] %m = attn.dilate %b by 2 rule(every)"};

} // namespace

TEST_CASE("tiles and pairs of lists equal brute force, forward and transposed") {
  for (const char *mask : kMasks)
    for (const char *origin : {"", "q_origin(end)"}) {
      CAPTURE(mask);
      auto file = parsed(patternText(mask, "memref<?x?x?xi32>", origin));
      for (Sizes sizes : kCsrSizes)
        for (attn::TileShape shape : {attn::TileShape{1, 1}, {7, 3}, {16, 8}, {48, 64}}) {
          std::string account =
              oracle::checkPattern(file->lowered(), file->analysis(), problemOf(*file, sizes, 3), shape);
          CHECK_MESSAGE(account.empty(), account);
        }
    }
}

TEST_CASE("compiled functions and the text of kernels equal the lists, for each batch element and head") {
  for (const char *type : {"memref<?x?x?xi32>", "memref<1x?x?xi32>", "memref<?x1x?xi32>"})
    for (const char *mask : {kMasks[0], kMasks[1], kMasks[2], kMasks[3]}) {
      CAPTURE(type);
      CAPTURE(mask);
      auto file = parsed(patternText(mask, type));
      auto functions = functionsOf(*file);
      REQUIRE_MESSAGE(functions.isOk(), functions.status().message());
      const PatternInfo &info = *functions->info;
      auto jit = JitPattern::create(*functions->module, info);
      REQUIRE(succeeded(jit));
      auto text = emitPatternFunctions(*functions->module, info);
      REQUIRE(succeeded(text));
      HostPattern host(*text, info);
      for (Sizes sizes : kCsrSizes) {
        const oracle::Problem problem = problemOf(*file, sizes, 8);
        oracle::PatternOracle definition(file->lowered(), problem);
        JitContext c;
        c.heads = int32_t(sizes.heads), c.seqlenQ = int32_t(sizes.seqlenQ), c.seqlenK = int32_t(sizes.seqlenK);
        for (size_t i = 0; i < 2; ++i)
          c.params[i] = int32_t(problem.parameters[i]), c.operands[i] = problem.operands[i].address();
        HandPattern rule{functions->info,
                         "",
                         [&](const JitContext &at, int branch, int q, int k) {
                           return definition.keeps(branch, at.head, q, k, at.batch);
                         },
                         {}};
        for (c.batch = 0; c.batch < sizes.batch; ++c.batch)
          for (c.head = 0; c.head < c.heads; ++c.head) {
            long wrong = 0;
            for (int branch = 0; branch < info.branchCount; ++branch)
              for (int q = 0; q < c.seqlenQ; ++q)
                for (int k = 0; k < c.seqlenK; ++k)
                  wrong += jit->keep(c, branch, q, k) != rule.keeps(c, branch, q, k) ||
                           host.keep(c, branch, q, k) != rule.keeps(c, branch, q, k);
            CHECK(wrong == 0);
            for (int branch = 0; branch < info.branchCount; ++branch) {
              REQUIRE(host.hasKeptColumns(branch));
              for (int q = 0; q < c.seqlenQ; ++q)
                for (int bit = 0; bit < 32; ++bit) { // bit 2 n + e is column 8 n + e
                  const int key = bit / 2 * 8 + bit % 2;
                  wrong += (host.keptColumns(c, branch, q, 0) >> bit & 1) !=
                           uint32_t(key < c.seqlenK && rule.keeps(c, branch, q, key));
                }
            }
            CHECK(wrong == 0);
            for (test::TileShape shape : {test::TileShape{1, 1}, {5, 3}, {16, 8}, {64, 64}}) {
              CHECK(checkRanges(host, rule, c, shape).error == "");
              CHECK(checkRanges(*jit, rule, c, shape).error == "");
            }
          }
      }
    }
}

TEST_CASE("lists that are made fit the call") {
  for (const char *type : {"memref<?x?x?xi32>", "memref<1x1x?xi32>"})
    for (auto [seqlenQ, seqlenK] : {std::pair<int64_t, int64_t>{0, 0}, {1, 1}, {100, 900}, {900, 3}, {4096, 4096}}) {
      auto file = parsed(patternText("%m = attn.blocks %l by [64]", type));
      ProblemShape shape;
      shape.batch = 2, shape.heads = 3;
      shape.seqlenQ = seqlenQ, shape.seqlenK = seqlenK;
      shape.parameters = {0, 0};
      Status bound = bindOperands(*file, {{}, {}, OperandSources::Missing::make, 5}, shape);
      CHECK_MESSAGE(bound.isOk(), bound.message());
    }
}

TEST_CASE("lists that are none are refused, and say what is expected") {
  auto file = parsed(patternText("%m = attn.blocks %l by [4]", "memref<1x1x?xi32>"));
  auto refusal = [&](const Entries &offsets, const Entries &indices) {
    ProblemShape shape;
    shape.seqlenQ = 12, shape.seqlenK = 20;
    shape.parameters = {0, 0};
    return checkOperands(*file,
                         {OperandTensor::integers({1, 1, int64_t(offsets.size())}, offsets),
                          OperandTensor::integers({int64_t(indices.size())}, indices)},
                         shape)
        .message();
  };
  CHECK(refusal({0, 2, 2, 3}, {0, 4, 1}) == "");
  CHECK(refusal({0, 2, 1, 3}, {0, 4, 1}) == "tensor 'offsets': expected entry 2 to be 2 to 3, got 1");
  CHECK(refusal({0, 2, 2, 4}, {0, 4, 1}) == "tensor 'offsets': expected entry 3 to be 2 to 3, got 4");
  CHECK(refusal({0, 2, 3}, {0, 4, 1}) == "tensor 'offsets': expected at least 4 offsets, one more than there "
                                         "are rows of blocks or queries, got 3");
  CHECK(refusal({0, 2, 2, 3}, {0, 5, 1}) == "tensor 'indices': expected entry 1 to be at least 1 and below 5, got 5");
  CHECK(refusal({0, 2, 2, 3}, {3, 3, 1}) == "tensor 'indices': expected entry 1 to be at least 4 and below 5, got 3");
  CHECK(refusal({0, 2, 2, 3}, {-1, 3, 1}) == "tensor 'indices': expected entry 0 to be at least 0 and below 5, got -1");
}
