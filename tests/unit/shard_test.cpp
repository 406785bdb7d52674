// Shards against the definition pair by pair: which columns some row of a shard keeps, both ways, for every file in
// patterns/, for odd compositions and for segments that are longer than a shard, as long, and cut by it.
#include "support/Places.h"
#include "dialect/Geometry/Shard.h"
#include "support/AnalysisChecks.h"
#include "support/PatternFiles.h"

using namespace heddle;
using namespace heddle::test;
using attn::Direction;
using attn::IndexRange;

namespace {

struct Seen {
  long shards = 0, nothing = 0, everything = 0, exact = 0;
};

std::set<int64_t> columnsOf(const attn::ShardVisit &visit) {
  std::set<int64_t> columns;
  for (const attn::LatticeColumns &lattice : visit.columns) {
    CHECK(!lattice.runs.empty());
    for (size_t i = 0; i < lattice.runs.size(); ++i) {
      CHECK(lattice.runs[i].begin < lattice.runs[i].end);
      CHECK((i == 0 || lattice.runs[i - 1].end < lattice.runs[i].begin));
      for (int64_t number = lattice.runs[i].begin; number < lattice.runs[i].end; ++number)
        columns.insert(lattice.residue + lattice.rate * number);
    }
  }
  return columns;
}

/// One head in one direction.
struct Subject {
  const PatternFile &file;
  const oracle::Problem &problem;
  Direction direction;
  std::vector<oracle::Pairs> branches;

  void check(const attn::ShardVisit &visit, IndexRange rows, IndexRange columns, Seen &seen) const {
    std::set<int64_t> kept;
    bool isFull = true;
    std::vector<bool> full(branches.size(), true);
    for (int64_t row = rows.begin; row < rows.end; ++row)
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        bool isKept = false;
        for (size_t branch = 0; branch < branches.size(); ++branch) {
          const bool isOfBranch = branches[branch].at(row, column);
          isKept |= isOfBranch;
          full[branch] = full[branch] && isOfBranch;
        }
        isFull = isFull && isKept;
        if (isKept)
          kept.insert(column);
      }
    const bool isOneBranchFull = std::count(full.begin(), full.end(), true) > 0;
    const std::set<int64_t> said = columnsOf(visit);
    INFO(std::string(file.lowered().getSymName())
         << (direction == Direction::Forward ? " forward" : " transposed") << " rows " << rows.begin << " to "
         << rows.end << " columns " << columns.begin << " to " << columns.end);
    CHECK(std::includes(said.begin(), said.end(), kept.begin(), kept.end()));
    CHECK((said.empty() || (*said.begin() >= columns.begin && *said.rbegin() < columns.end)));
    if (visit.isExact)
      CHECK(said == kept);
    CHECK(visit.keepsNothing() == said.empty());
    CHECK((!visit.keepsAll || isFull));
    if (isExactlyFull())
      CHECK(visit.keepsAll == isOneBranchFull);
    ++seen.shards, seen.nothing += visit.keepsNothing(), seen.everything += visit.keepsAll, seen.exact += visit.isExact;
  }

  /// Of one piece in a branch, everything is shown where it is kept.
  bool isExactlyFull() const {
    for (const attn::Variant &variant : file.analysis().variants)
      for (unsigned branch = 0; branch < branches.size(); ++branch)
        if (oracle::owed(variant, branch, direction, 1) != oracle::Exactness::Exact)
          return false;
    return true;
  }
};

template <class Use> void forEachShard(int64_t count, int64_t size, Use use) {
  for (int64_t begin = 0; begin < count; begin += size)
    use(IndexRange{begin, std::min(begin + size, count)});
}

void checkProblem(const PatternFile &file, oracle::Problem problem, std::initializer_list<int64_t> sizes, Seen &seen) {
  problem.operands = maskOperands(file, problem.heads, problem.seqlenQ, problem.seqlenK, problem.parameters);
  oracle::PatternOracle definition(file.lowered(), problem);
  const attn::ProblemSizes call = oracle::toSizes(problem);
  for (Direction direction : {Direction::Forward, Direction::Transposed}) {
    const attn::ShardVisitor visitor(file.analysis(), direction, call);
    for (int64_t head = 0; head < problem.heads; ++head) {
      Subject subject{file, problem, direction, {}};
      for (unsigned branch = 0; branch < definition.branchCount(); ++branch)
        subject.branches.push_back(oracle::pairsOf(definition, problem, branch, head, direction));
      for (int64_t size : sizes)
        forEachShard(subject.branches[0].rows, size, [&](IndexRange rows) {
          forEachShard(subject.branches[0].columns, size, [&](IndexRange columns) {
            subject.check(visitor.visit(head, rows, columns), rows, columns, seen);
          });
        });
    }
  }
}

Seen checkFile(const PatternFile &file) {
  Seen seen;
  checkProblem(file, {2, 96, 96, 0, 0, sizesFrom(file, 20)}, {16, 20, 33, 96}, seen);
  checkProblem(file, {1, 50, 130, 2030, 1950, sizesFrom(file, 24)}, {24, 130}, seen);
  return seen;
}

} // namespace

TEST_CASE("every file in patterns/") {
  Seen all;
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    const Seen seen = checkFile(*loaded(path));
    CHECK(seen.nothing < seen.shards);
    all.shards += seen.shards, all.nothing += seen.nothing, all.everything += seen.everything, all.exact += seen.exact;
  }
  CHECK(all.nothing > all.shards / 10);
  CHECK(all.everything > all.shards / 20);
  CHECK(all.exact > all.shards * 3 / 4);
}

TEST_CASE("odd compositions") {
  for (const std::string &text : oddPatterns()) {
    CAPTURE(text);
    checkFile(*parsed(text));
  }
}

TEST_CASE("shards shorter than a segment, as long, and not dividing it") {
  for (const char *ops :
       {"%a = attn.full %m = attn.segment %a by [24]", "%a = attn.causal %m = attn.segment %a by [24]",
        "%a = attn.window [3, 1] %b = attn.segment %a by [24] %m = attn.dilate %b by 2 at 1",
        "%a = attn.causal %b = attn.segment %a by [24] %m = attn.not %b"}) {
    const auto file = parsed(unionText(ops));
    Seen seen;
    checkProblem(*file, {1, 96, 96, 0, 0, {}}, {8, 24, 20, 48}, seen);
    CHECK(seen.nothing > 0);
  }
}

TEST_CASE("a segment is exchanged with nobody, a dilated window asks for its own class of the neighbour only") {
  const auto segments = parsed(unionText("%a = attn.causal %m = attn.segment %a by [24]"));
  const attn::ProblemSizes sizes{1, 96, 96, 0, 0, {}};
  const attn::ShardVisitor alone(segments->analysis(), Direction::Forward, sizes);
  CHECK(alone.visit(0, {24, 48}, {0, 24}).keepsNothing());
  CHECK(alone.visit(0, {24, 48}, {24, 48}).isExact);
  const auto dilated = parsed(unionText("%a = attn.window [2, 0] %m = attn.dilate %a by 4 at 1"));
  const attn::ShardVisitor near(dilated->analysis(), Direction::Forward, sizes);
  const attn::ShardVisit asked = near.visit(0, {48, 72}, {24, 48});
  REQUIRE(asked.columns.size() == 1);
  CHECK(asked.columns[0].rate == 4);
  CHECK(asked.columns[0].residue == 1);
  CHECK(asked.columns[0].runs == std::vector<attn::TileRun>{{10, 12}});
  CHECK(asked.isExact);
  CHECK(near.visit(0, {48, 72}, {0, 24}).keepsNothing());
  const auto full = parsed(unionText("%m = attn.full"));
  const attn::ShardVisitor all(full->analysis(), Direction::Transposed, sizes);
  CHECK(all.visit(0, {48, 200}, {0, 24}).keepsAll);
  CHECK(all.visit(0, {96, 200}, {0, 24}).keepsNothing());
}

TEST_CASE("a tensor that is not given: everything may be asked for") {
  const auto file = loaded(test::places().patterns + "/document_window.mlir");
  attn::ProblemSizes sizes{1, 96, 96, 0, 0, sizesFrom(*file, 20)};
  sizes.tensors.resize(sizes.parameters.size());
  const attn::ShardVisit visit =
      attn::ShardVisitor(file->analysis(), Direction::Forward, sizes).visit(0, {0, 24}, {48, 72});
  CHECK(!visit.isExact);
  CHECK(!visit.keepsAll);
  CHECK(columnsOf(visit).size() == 24);
}
