// The generated functions of both directions, compiled by the host's compiler and for the CPU target, against the
// definition pair by pair: key ranges of query tiles and query ranges of key tiles, for every file in patterns/ and for odd compositions, at the
// tiles of docs/language.md, "What exact means".
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Emit/EmitPattern.h"
#include "codegen/Emit/PatternInfo.h"
#include "codegen/Schedule/AttentionSchedule.h"
#include "compiler/Pattern/PatternFunctions.h"
#include "support/AnalysisChecks.h"
#include "support/HostPattern.h"
#include "support/PatternFiles.h"
#include "support/RangeCheck.h"

using namespace heddle;
using namespace heddle::test;
using attn::Direction;

namespace {

/// The functions of kernels that walk both ways, as text and as machine code.
struct Compiled {
  std::shared_ptr<const PatternInfo> info;
  std::unique_ptr<HostPattern> text;
  std::optional<JitPattern> jit;
};

Compiled compiled(const PatternFile &file) {
  auto functions = functionsOf(file, Walk::both);
  REQUIRE_MESSAGE(functions.isOk(), functions.status().message());
  auto text = emitPatternFunctions(*functions->module, *functions->info);
  REQUIRE(succeeded(text));
  auto jit = JitPattern::create(*functions->module, *functions->info);
  REQUIRE(succeeded(jit));
  REQUIRE(jit->isTransposed());
  return {functions->info, std::make_unique<HostPattern>(*text, *functions->info), *jit};
}

/// The same call with keys as rows: what checkRanges asks of a direction, it then asks of the other.
JitContext exchanged(JitContext context) {
  std::swap(context.seqlenQ, context.seqlenK);
  std::swap(context.qOrigin, context.kOrigin);
  return context;
}

template <class Functions> struct Transposed {
  const Functions &functions;

  int variant(const JitContext &c) const { return functions.variant(exchanged(c)); }
  int queryRate(int variant) const { return functions.transposedKeyRate(variant); }
  int keyRate(int variant, int branch) const { return functions.transposedQueryRate(variant, branch); }
  int keyResidue(const JitContext &c, int variant, int branch, int tileFirst) const {
    return functions.transposedQueryResidue(exchanged(c), variant, branch, tileFirst);
  }
  JitKeyRange nextRange(const JitContext &c, const JitTile &tile, int from) const {
    return functions.transposedNextRange(exchanged(c), tile, from);
  }
};

/// One head of one problem, its pairs by the definition.
struct Subject {
  const PatternFile &file;
  const HostPattern &text;
  const JitPattern &jit;
  HandPattern rule = {};
  JitContext context = {};
  std::vector<std::vector<char>> kept = {}; ///< by branch; row after row

  bool keeps(int branch, int i, int j) const { return kept[branch][size_t(i) * context.seqlenK + j]; }

  /// What is owed for all branches together.
  oracle::Exactness owed(Direction direction, int columns) const {
    oracle::Exactness weakest = oracle::Exactness::Exact;
    const attn::Variant &variant = file.analysis().variants[text.variant(context)];
    for (unsigned branch = 0; branch < variant.branches.size(); ++branch)
      weakest = std::max(weakest, oracle::owed(variant, branch, direction, columns));
    return weakest;
  }

  template <class Functions> RangeReport check(const Functions &functions, Direction direction, TileShape shape) {
    const bool isForward = direction == Direction::Forward;
    rule.keeps = [this, isForward](const JitContext &c, int branch, int row, int column) {
      const int i = row - c.qOrigin, j = column - c.kOrigin;
      return isForward ? keeps(branch, i, j) : keeps(branch, j, i);
    };
    RangeReport report = checkRanges(functions, rule, isForward ? context : exchanged(context), shape);
    const oracle::Exactness exactness = owed(direction, shape.blockN);
    INFO(rule.info->name << (isForward ? " forward" : " transposed") << " head " << context.head << " q "
                         << context.seqlenQ << "+" << context.qOrigin << " k " << context.seqlenK << "+"
                         << context.kOrigin << " tile " << shape.blockM << "x" << shape.blockN);
    CHECK(report.error == "");
    if (exactness != oracle::Exactness::Superset)
      CHECK(report.visitedTiles == report.nonEmptyTiles);
    if (exactness == oracle::Exactness::Exact)
      CHECK(report.fullTiles == report.trulyFullTiles);
    return report;
  }

  /// Words of transposed columns of the tiles of every 16 queries, for every key.
  void checkWords(long &words) const {
    long wrong = 0;
    for (int branch = 0; branch < rule.branchCount(); ++branch) {
      const int variant = text.variant(context), rate = text.transposedQueryRate(variant, branch);
      for (int j = 0; text.hasTransposedKeptColumns(branch) && j < context.seqlenK; ++j)
        for (int first = text.transposedQueryResidue(context, variant, branch, context.kOrigin + j);
             first < context.seqlenQ; first += 16 * rate) {
          uint32_t expected = 0;
          for (int bit = 0; bit < 32; ++bit) // lane_columns.cuh
            if (const int i = first + rate * (bit / 2 * 8 + bit % 2); i < context.seqlenQ && keeps(branch, i, j))
              expected |= 1u << bit;
          wrong +=
              text.transposedKeptColumns(context, branch, context.kOrigin + j, context.qOrigin + first) != expected;
          ++words;
        }
    }
    CHECK(wrong == 0);
  }

  /// Words of the band in the visited tiles of `side` keys and queries, whose squares nothing else cuts.
  void checkBand(long &bits) const {
    const attn::BandedGrain banded = attn::bandedGrainOf(file.analysis(), Direction::Transposed);
    CHECK(text.hasTransposedBandColumns() == (banded.grain > 1));
    const int side = int(std::gcd<int64_t>(banded.grain, 64)), variant = text.variant(context);
    if (banded.grain == 1 || context.qOrigin != 0 || context.kOrigin != 0)
      return;
    long wrong = 0;
    for (int branch = 0; branch < rule.branchCount(); ++branch)
      for (int first = 0; first < context.seqlenK; first += side) {
        REQUIRE(text.transposedKeyRate(variant) * text.transposedQueryRate(variant, branch) == 1);
        const int last = std::min(first + side, context.seqlenK) - 1;
        JitKeyRange run{0, 0, 0, 0, 0};
        while ((run = text.transposedNextRange(context, {variant, branch, first, last, side}, run.end)).begin !=
               JitKeyRange::kNoTile)
          for (int tile = run.begin; tile < run.end; ++tile)
            for (int j = first; j <= last; ++j)
              wrong += wrongInBand(branch, j, tile * side, side, bits);
      }
    CHECK(wrong == 0);
  }

private:
  bool wrongInBand(int branch, int j, int firstQuery, int side, long &bits) const {
    uint32_t expected = 0, inTile = 0;
    for (int bit = 0; bit < 32; ++bit) // lane_columns.cuh
      if (const int ahead = bit / 2 * 8 + bit % 2, i = firstQuery + ahead; ahead < side) {
        inTile |= 1u << bit;
        if (i < context.seqlenQ && keeps(branch, i, j))
          expected |= 1u << bit;
      }
    bits += __builtin_popcount(expected);
    return (text.transposedBandColumns(context, branch, j, firstQuery) & inTile) != expected;
  }
};

struct Seen {
  long visited[2] = {}, words = 0, bandBits = 0;
};

void checkHead(Subject &subject, Seen &seen) {
  for (int rows : {1, 48, 64, 128})
    for (int columns : {1, 48, 64, 128}) {
      seen.visited[0] += subject.check(subject.text, Direction::Forward, {rows, columns}).visitedTiles;
      seen.visited[1] +=
          subject.check(Transposed<HostPattern>{subject.text}, Direction::Transposed, {rows, columns}).visitedTiles;
      subject.check(subject.jit, Direction::Forward, {rows, columns});
      subject.check(Transposed<JitPattern>{subject.jit}, Direction::Transposed, {rows, columns});
    }
  subject.checkWords(seen.words);
  subject.checkBand(seen.bandBits);
}

void checkProblem(Subject &subject, oracle::Problem problem, Seen &seen) {
  problem.operands = maskOperands(subject.file, problem.heads, problem.seqlenQ, problem.seqlenK, problem.parameters);
  const oracle::PatternOracle definition(subject.file.lowered(), problem);
  JitContext &context = subject.context;
  context.heads = int32_t(problem.heads);
  context.seqlenQ = int32_t(problem.seqlenQ), context.seqlenK = int32_t(problem.seqlenK);
  context.qOrigin = int32_t(problem.qOrigin), context.kOrigin = int32_t(problem.kOrigin);
  std::copy(problem.parameters.begin(), problem.parameters.end(), context.params.begin());
  for (size_t i = 0; i < subject.rule.info->operands.size(); ++i)
    if (const OperandTensor &tensor = problem.operands[size_t(subject.rule.info->operands[i].argument)])
      context.operands[i] = tensor.address();
  for (context.head = 0; context.head < context.heads; ++context.head) {
    subject.kept.assign(definition.branchCount(), {});
    for (unsigned branch = 0; branch < definition.branchCount(); ++branch)
      for (int64_t i = 0; i < problem.seqlenQ; ++i)
        for (int64_t j = 0; j < problem.seqlenK; ++j)
          subject.kept[branch].push_back(definition.keeps(branch, context.head, i, j));
    checkHead(subject, seen);
  }
}

Seen checkFile(const PatternFile &file) {
  const Compiled functions = compiled(file);
  Subject subject{file, *functions.text, *functions.jit};
  subject.rule.info = functions.info;
  Seen seen;
  checkProblem(subject, {2, 141, 141, 0, 0, sizesFrom(file, 20)}, seen);
  checkProblem(subject, {1, 70, 200, 2030, 1950, sizesFrom(file, 33)}, seen);
  return seen;
}

} // namespace

TEST_CASE("every file in patterns/, both ways") {
  long words = 0, bandBits = 0;
  for (const std::string &path : halfOfLibrary(0)) {
    CAPTURE(path);
    const Seen seen = checkFile(*loaded(path));
    CHECK(seen.visited[0] > 0);
    CHECK(seen.visited[1] > 0);
    words += seen.words;
    bandBits += seen.bandBits;
  }
  CHECK(words > 20000);
  CHECK(bandBits > 3000);
}

TEST_CASE("odd compositions, both ways") {
  for (const std::string &text : oddPatterns()) {
    CAPTURE(text);
    checkFile(*parsed(text));
  }
}

TEST_CASE("forward kernels hold nothing transposed") {
  for (const std::string &path : libraryPatterns()) {
    const auto file = loaded(path);
    auto functions = functionsOf(*file);
    REQUIRE(functions.isOk());
    CHECK(!hasKeyTiles(*functions->module));
    auto jit = JitPattern::create(*functions->module, *functions->info);
    REQUIRE(succeeded(jit));
    CHECK(!jit->isTransposed());
  }
}
