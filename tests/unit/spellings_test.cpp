//===- spellings_test.cpp - texts of one set are one pattern ---------------------===//
// Laws of sets and of sizes, applied at random to compositions over every op and to what the library is made of: what
// is compiled keeps the pairs that are written, visits the tiles that the other text visits, in both directions, and
// has its digest. 1,000 pairs of texts; 20,000 with HEDDLE_TEST_ALL=1; HEDDLE_TEST_SEED=n starts elsewhere.
//===----------------------------------------------------------------------===//
#include "dialect/Geometry/Counts.h"
#include "dialect/IR/Sizes.h"
#include "support/AnalysisChecks.h"
#include "support/ManyCases.h"
#include "support/PatternFiles.h"
#include "support/Spellings.h"

#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;

namespace {

/// What a text comes to, for the problem of a case.
struct Meaning {
  std::string digest, pairs, tiles, wrong;
};

std::string tilesOf(const attn::PatternAnalysis &analysis, const attn::ProblemSizes &sizes, const RandomCase &made) {
  std::string text;
  for (attn::Direction direction : {attn::Direction::Forward, attn::Direction::Transposed}) {
    const attn::TileCounts counts = attn::countTiles(analysis, sizes, {made.blockM, made.blockN}, direction);
    text += attn::toString(counts.visited) + " visited, " + attn::toString(counts.full) + " full; ";
  }
  return text;
}

/// Pairs that what is compiled keeps more or less often than what is written.
std::string wrongPairs(const PatternFile &file, const oracle::Problem &problem) {
  const oracle::PatternOracle written(file.pattern(), problem), compiled(file.lowered(), problem);
  auto copies = [](const oracle::PatternOracle &definition, int64_t head, int64_t row, int64_t key) {
    int sum = 0;
    for (unsigned branch = 0; branch < definition.branchCount(); ++branch)
      sum += definition.keeps(branch, head, row, key);
    return sum;
  };
  for (int64_t head = 0; head < problem.heads; ++head)
    for (int64_t row = 0; row < problem.seqlenQ; ++row)
      for (int64_t key = 0; key < problem.seqlenK; ++key)
        if (copies(written, head, row, key) != copies(compiled, head, row, key))
          return "head " + std::to_string(head) + ", row " + std::to_string(row) + ", key " + std::to_string(key);
  return "";
}

std::optional<Meaning> meaningOf(const RandomCase &made, std::vector<int64_t> &parameters) {
  auto file = PatternFile::parse(made.text(parameters), "test.mlir");
  if (!file)
    return std::nullopt;
  const oracle::Problem problem{made.heads, made.seqlenQ, made.seqlenK, made.qOrigin, made.kOrigin, parameters};
  const attn::ProblemSizes sizes = oracle::toSizes(problem);
  std::optional<attn::WideInt> pairs = attn::countPairs((*file)->analysis(), sizes);
  return Meaning{(*file)->digest().take(), pairs ? attn::toString(*pairs) : "unknown",
                 tilesOf((*file)->analysis(), sizes, made), wrongPairs(**file, problem)};
}

/// How many texts there were, and how many had another digest than the one that they were made from.
struct Tally {
  std::vector<int64_t> applied;
  int64_t pairs = 0, others = 0;
};

Outcome compare(const RandomCase &made, uint32_t seed, Tally &tally) {
  std::vector<int64_t> parameters;
  const std::optional<Meaning> one = meaningOf(made, parameters);
  if (!one)
    return {};
  std::mt19937 random(seed);
  RandomCase respelled = made;
  for (MaskNode &branch : respelled.branches)
    branch = test::respelled(random, branch, 1 + int(random() % 6), tally.applied);
  const std::optional<Meaning> other = meaningOf(respelled, parameters);
  if (!other)
    return {};
  ++tally.pairs;
  tally.others += one->digest != other->digest;
  const std::string text = "\nrespelled: " + respelled.text(parameters);
  if (!one->wrong.empty() || !other->wrong.empty())
    return {true, "compiled unlike written at " + one->wrong + " / " + other->wrong + text};
  if (one->tiles != other->tiles)
    return {true, one->tiles + " / " + other->tiles + text};
  return {true, one->pairs == other->pairs ? "" : one->pairs + " pairs / " + other->pairs + text};
}

/// The sizes of an op, run-time ones by their argument.
template <class Op> void setSizes(MaskNode &node, Op op) {
  const attn::Sizes sizes{op.getDynamicSizes(), op.getSizes()};
  int64_t MaskNode::*const fields[] = {&MaskNode::a, &MaskNode::b, &MaskNode::c, &MaskNode::d};
  for (unsigned i = 0; i < sizes.values.size(); ++i) {
    const attn::IntExpr size = sizes.expr(i);
    node.isRuntime |= !size.constant();
    node.*fields[i] = size.constant() ? *size.constant() : 20 + 3 * size.get()->symbol.index;
  }
}

template <class Op> void setOffset(MaskNode &node, Op op) {
  node.a = op.getRate();
  node.b = op.getAt().value_or(0);
  if (op.getRule())
    node.rule = attn::stringifyOffsetRule(*op.getRule()).str();
}

template <class... Ops> bool setAnySizes(MaskNode &node, mlir::Operation *op) {
  return ((mlir::isa<Ops>(op) && (setSizes(node, mlir::cast<Ops>(op)), true)) || ...);
}

/// False: nothing that a MaskNode says.
bool readNode(mlir::Value mask, MaskNode &node) {
  static const std::map<std::string, MaskNode::Kind> kinds = {
      {"attn.full", MaskNode::Full},       {"attn.causal", MaskNode::Causal}, {"attn.window", MaskNode::Window},
      {"attn.rows", MaskNode::Rows},       {"attn.cols", MaskNode::Cols},     {"attn.box", MaskNode::Box},
      {"attn.prefix", MaskNode::Prefix},   {"attn.random", MaskNode::Random}, {"attn.and", MaskNode::And},
      {"attn.or", MaskNode::Or},           {"attn.not", MaskNode::Not},       {"attn.heads", MaskNode::Heads},
      {"attn.segment", MaskNode::Segment}, {"attn.blocks", MaskNode::Blocks}, {"attn.dilate", MaskNode::Dilate},
      {"attn.stride", MaskNode::StrideK}};
  mlir::Operation *op = mask.getDefiningOp();
  const auto kind = kinds.find(op->getName().getStringRef().str());
  if (kind == kinds.end())
    return false;
  node.kind = kind->second;
  setAnySizes<attn::WindowOp, attn::RowsOp, attn::ColsOp, attn::BoxOp, attn::PrefixOp, attn::RandomOp, attn::SegmentOp,
              attn::BlocksOp>(node, op);
  if (auto dilate = mlir::dyn_cast<attn::DilateOp>(op))
    setOffset(node, dilate);
  if (auto stride = mlir::dyn_cast<attn::StrideOp>(op)) {
    setOffset(node, stride);
    node.kind = stride.getAxis() == attn::Axis::q ? MaskNode::StrideQ : MaskNode::StrideK;
  }
  for (mlir::Value operand : op->getOperands())
    if (mlir::isa<attn::MaskType>(operand.getType()) && !readNode(operand, node.operands.emplace_back()))
      return false;
  return true;
}

/// A library pattern without its scores; nothing if tensors make its mask.
std::optional<RandomCase> caseOf(const PatternFile &file) {
  RandomCase made{{}, false, true, 3, 67, 67, 0, 0, 16, 16};
  attn::SoftmaxOp softmax = attn::PatternOp(file.pattern()).getSoftmax();
  made.isUnion = softmax.getCombine() == attn::Combine::set_union;
  for (mlir::Value branch : softmax.getBranches())
    if (!readNode(branch, made.branches.emplace_back()))
      return std::nullopt;
  return made;
}

RandomCase caseOf(std::mt19937 &random) {
  RandomCase made = randomCase(random, 4);
  made.sharesSizes = true;
  made.seqlenQ = made.seqlenQ % 40;
  made.seqlenK = made.seqlenK % 40;
  made.heads = 1 + made.heads % 3;
  return made;
}

} // namespace

TEST_CASE("texts of one set are one pattern") {
  const int64_t wanted = fromEnvironment("HEDDLE_TEST_ALL", 0) ? 20000 : 1000;
  Tally tally;
  uint32_t seed = 0;
  checkMany(
      wanted, 2 * wanted + 100,
      [&](std::mt19937 &random, int64_t tried) {
        seed = uint32_t(tried);
        return caseOf(random);
      },
      [&](const RandomCase &made) { return compare(made, seed, tally); });
  CHECK(tally.others * 1000 <= tally.pairs);
  CHECK(spellingLaws() >= 12);
  for (int64_t applied : tally.applied)
    CHECK(applied > 0);
}

TEST_CASE("texts of a library pattern are that pattern") {
  const int64_t texts = fromEnvironment("HEDDLE_TEST_ALL", 0) ? 100 : 6;
  Tally tally;
  for (const std::string &path : libraryPatterns())
    if (const std::optional<RandomCase> made = caseOf(*loaded(path)))
      for (int64_t text = 0; text < texts; ++text) {
        const Outcome outcome = compare(*made, uint32_t(text), tally);
        CHECK_MESSAGE(outcome.account.empty(), path, "\n", outcome.account);
      }
  CHECK(tally.pairs >= 30 * texts);
  CHECK(tally.others == 0);
}
