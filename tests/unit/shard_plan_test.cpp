// Plans of ranks against the definition pair by pair: which columns travel in which heads, how many pairs every step
// keeps, both ways, for every file in patterns/, for odd compositions and for segments that are longer than a shard, as
// long, and cut by it.
#include "support/Places.h"
#include "dialect/Geometry/GroupPlanner.h"
#include "dialect/Geometry/ShardPlan.h"
#include "support/AnalysisChecks.h"
#include "support/PatternFiles.h"

using namespace heddle;
using namespace heddle::test;
using attn::Direction;
using attn::IndexRange;
using attn::ShardLayout;
using attn::ShardPlan;

namespace {

struct Seen {
  long steps = 0, nothing = 0, everything = 0, exact = 0, counted = 0;
  long calls = 0; ///< plans that ranks follow, of which rows travel to no keys
  long keys = 0;  ///< launches that have keys of others where gradients of their own are computed
};

std::set<int64_t> columnsOf(const std::vector<attn::LatticeColumns> &lattices) {
  std::set<int64_t> columns;
  for (const attn::LatticeColumns &lattice : lattices)
    for (const attn::TileRun &run : lattice.runs)
      for (int64_t number = run.begin; number < run.end; ++number)
        columns.insert(lattice.residue + lattice.rate * number);
  return columns;
}

/// One problem in one direction, by its definition.
struct Definition {
  std::vector<std::vector<oracle::Pairs>> heads; ///< by query head, then by branch
  int64_t columnHeads;

  int64_t copies(int64_t head, int64_t row, int64_t column) const {
    int64_t copies = 0;
    for (const oracle::Pairs &branch : heads[head])
      copies += branch.at(row, column);
    return copies;
  }
};

/// What the definition says of a step.
struct Wanted {
  std::vector<std::set<int64_t>> columns; ///< by column head
  std::set<int64_t> all;
  int64_t headColumns = 0, pairs = 0;
  bool isWhole = true;
};

Wanted wantedOf(const Definition &definition, const ShardLayout &layout, size_t rank, size_t peer) {
  Wanted wanted;
  wanted.columns.resize(definition.columnHeads);
  const int64_t heads = definition.heads.size(), group = heads / definition.columnHeads;
  for (int64_t head = 0; head < heads; ++head)
    for (const IndexRange &rows : layout.ranks[rank])
      for (int64_t row = rows.begin; row < rows.end; ++row)
        for (const IndexRange &columns : layout.ranks[peer])
          for (int64_t column = columns.begin; column < columns.end; ++column) {
            const int64_t copies = definition.copies(head, row, column);
            wanted.pairs += copies;
            wanted.isWhole = wanted.isWhole && copies == int64_t(definition.heads[head].size());
            if (copies)
              wanted.columns[head / group].insert(column);
          }
  for (const std::set<int64_t> &columns : wanted.columns) {
    wanted.all.insert(columns.begin(), columns.end());
    wanted.headColumns += columns.size();
  }
  return wanted;
}

void checkStep(const ShardPlan &plan, const ShardLayout &layout, const Wanted &wanted, size_t rank, size_t peer,
               Seen &seen) {
  const attn::ShardStep &step = plan.step(rank, peer);
  std::vector<std::set<int64_t>> said;
  std::set<int64_t> all;
  for (const attn::ColumnNeed &need : plan.needs(rank, peer)) {
    const std::set<int64_t> columns = columnsOf(need.columns);
    all.insert(columns.begin(), columns.end());
    said.insert(said.end(), need.heads, columns);
  }
  CHECK(std::includes(all.begin(), all.end(), wanted.all.begin(), wanted.all.end()));
  CHECK(said.size() == wanted.columns.size());
  CHECK(step.columns >= int64_t(all.size()));
  CHECK(step.headColumns >= wanted.headColumns);
  CHECK(step.columns <= layout.rowsOf(peer));
  if (step.isExact) {
    std::vector<std::set<int64_t>> columns = wanted.columns;
    std::sort(columns.begin(), columns.end());
    std::sort(said.begin(), said.end());
    CHECK(said == columns);
    CHECK(step.columns == int64_t(wanted.all.size()));
    CHECK(step.headColumns == wanted.headColumns);
  }
  if (step.pairs)
    CHECK(*step.pairs == wanted.pairs);
  CHECK((!step.isWhole || wanted.isWhole));
  ++seen.steps, seen.nothing += step.columns == 0, seen.everything += step.isWhole, seen.exact += step.isExact,
      seen.counted += step.pairs.has_value();
}

std::vector<ShardLayout> layoutsOf(int64_t rows, int64_t ranks, int64_t stripe) {
  std::vector<ShardLayout> layouts;
  for (const auto &made : {attn::contiguousLayout(rows, ranks), attn::zigzagLayout(rows, ranks),
                           attn::stripedLayout(rows, ranks, stripe)}) {
    REQUIRE_MESSAGE(made.isOk(), made.status().message());
    layouts.push_back(*made);
    CHECK(attn::checkLayout(layouts.back(), rows).isOk());
  }
  return layouts;
}

/// Ranks send what the plan says that somebody keeps, and nothing else, but for rows that travel to their keys.
void checkCalls(const PatternFile &file, const attn::ProblemSizes &sizes, const ShardLayout &layout, int64_t kvHeads,
                attn::WideInt travelling, Seen &seen) {
  for (attn::GroupForm form : {attn::GroupForm::Gather, attn::GroupForm::Ring}) {
    attn::GroupPlanRequest request{file.analysis(), sizes, layout, kvHeads};
    request.form = form;
    const Result<GroupPlan> made = attn::makeGroupPlan(request);
    REQUIRE_MESSAGE(made.isOk(), made.status().message());
    if (made->forward.guests.empty())
      CHECK(made->forward.headRows() == travelling);
    else
      CHECK(made->forward.headRows() < travelling);
    seen.calls += made->forward.guests.empty();
  }
}

bool isIn(const RowRange &range, int64_t row) { return range.begin <= row && row < range.end; }

/// Heads of k and v, and rows of them, that come to a rank in a step.
std::set<std::pair<int64_t, int64_t>> arrivedAt(const GroupStep &step, int32_t rank) {
  std::set<std::pair<int64_t, int64_t>> arrived;
  for (const Hop &hop : step.hops)
    for (const HeadRows &part : hop.parts)
      for (const RowRun &run : part.rows)
        for (int64_t i = 0; hop.to == rank && i < run.count * part.heads; ++i)
          arrived.insert({part.firstHead + i / run.count, run.first + run.rate * (i % run.count)});
  return arrived;
}

/// Rows in windows of a step that neither lie on the rank nor come in every head, and are not blank either.
int64_t unfilled(const GroupStep &step, const GroupPlan &plan, int32_t rank, int64_t heads) {
  const std::set<std::pair<int64_t, int64_t>> arrived = arrivedAt(step, rank);
  int64_t count = 0;
  for (const RowRange &window : step.ranks[size_t(rank)].windows)
    for (int64_t row = window.begin; row < window.end; ++row) {
      const std::vector<RowRange> &blanks = step.ranks[size_t(rank)].blanks;
      bool isFilled =
          placeOfRow(plan.layout[size_t(rank)], row) >= 0 ||
          std::any_of(blanks.begin(), blanks.end(), [&](const RowRange &blank) { return isIn(blank, row); });
      for (int64_t head = 0, there = 0; !isFilled && head < heads; ++head)
        isFilled = (there += arrived.count({head, row})) == heads;
      count += !isFilled;
    }
  return count;
}

/// Of a block of keys: queries in some head that keep a key of it are in the launch, and the rank has all keys that they keep
/// there, in memory that begins with key 0. How many are lacking.
int64_t lackingOf(const GroupPlan &plan, int32_t rank, const ShardLaunch &launch, const Definition &definition) {
  const std::set<std::pair<int64_t, int64_t>> arrived = arrivedAt(plan.keys.steps[0], rank);
  const RowRange &block = plan.transposed.blocks[size_t(rank)][size_t(launch.rows)];
  const ShardLaunch *all = plan.keysOf(rank, launch.rows);
  const RowRange keys = all ? all->columns : block;
  const int64_t ofKey = int64_t(definition.heads.size()) / definition.columnHeads;
  CHECK(keys.begin == 0);
  int64_t lacking = 0;
  for (int64_t head = 0; head < int64_t(definition.heads.size()); ++head)
    for (int64_t query = 0; query < plan.rows; ++query) {
      bool isOfBlock = false;
      for (int64_t key = block.begin; key < block.end; ++key)
        isOfBlock = isOfBlock || definition.copies(head, query, key);
      lacking += isOfBlock && !isIn(launch.columns, query);
      for (int64_t key = 0; isOfBlock && key < plan.rows; ++key) {
        const bool isHere = placeOfRow(plan.layout[size_t(rank)], key) >= 0 || arrived.count({head / ofKey, key}) > 0;
        lacking += definition.copies(head, query, key) && !(isHere && isIn(keys, key));
      }
    }
  return lacking;
}

void checkKeys(const PatternFile &file, const attn::ProblemSizes &sizes, const ShardLayout &layout,
               const Definition &definition, Seen &seen) {
  attn::GroupPlanRequest request{file.analysis(), sizes, layout, definition.columnHeads};
  request.isPlacementFree = request.areGradientsDetached = true, request.columnStep = 4;
  const Result<GroupPlan> made = attn::makeGroupPlan(request);
  REQUIRE_MESSAGE(made.isOk(), made.status().message());
  for (int32_t rank = 0; rank < made->ranks(); ++rank) {
    CHECK(unfilled(made->keys.steps[0], *made, rank, made->kvHeads) == 0);
    for (const GroupStep &step : made->transposed.steps) {
      CHECK(unfilled(step, *made, rank, made->heads) == 0);
      for (const ShardLaunch &launch : step.ranks[size_t(rank)].launches) {
        CHECK(lackingOf(*made, rank, launch, definition) == 0);
        seen.keys += made->keysOf(rank, launch.rows) != nullptr;
      }
    }
  }
}

struct Case {
  oracle::Problem problem;
  int64_t kvHeads;
  std::vector<int64_t> ranks;
  int64_t stripe;
};

void checkLayouts(const PatternFile &file, const Case &of, const attn::ProblemSizes &sizes,
                  const std::map<Direction, Definition> &definitions, Seen &seen) {
  for (int64_t ranks : of.ranks)
    for (const ShardLayout &layout : layoutsOf(sizes.seqlenQ, ranks, of.stripe))
      for (const auto &each : definitions) {
        const Direction direction = each.first;
        const Definition &definition = each.second;
        const auto plan = ShardPlan::create({file.analysis(), sizes, layout, of.kvHeads, direction});
        REQUIRE_MESSAGE(plan.isOk(), plan.status().message());
        INFO(std::string(file.lowered().getSymName())
             << (direction == Direction::Forward ? " forward, " : " transposed, ") << ranks << " ranks, "
             << layout.ranks[0].size() << " ranges of rank 0");
        attn::WideInt pairs = 0;
        int64_t sum = 0;
        for (int64_t rank = 0; rank < ranks; ++rank)
          for (int64_t peer = 0; peer < ranks; ++peer) {
            const Wanted wanted = wantedOf(definition, layout, rank, peer);
            checkStep(*plan, layout, wanted, rank, peer, seen);
            sum += wanted.pairs;
            pairs += plan->step(rank, peer).pairs.value_or(wanted.pairs);
          }
        CHECK(pairs == sum);
        if (direction == Direction::Forward)
          checkCalls(file, sizes, layout, of.kvHeads, plan->travelling(), seen);
        if (direction == Direction::Forward && ranks < 5)
          checkKeys(file, sizes, layout, definition, seen);
        if (const auto whole = attn::countPairs(file.analysis(), sizes))
          CHECK(*whole == pairs);
      }
}

void checkCase(const PatternFile &file, Case of, Seen &seen) {
  oracle::Problem &problem = of.problem;
  problem.operands = maskOperands(file, problem.heads, problem.seqlenQ, problem.seqlenK, problem.parameters);
  oracle::PatternOracle oracle(file.lowered(), problem);
  const attn::ProblemSizes sizes = oracle::toSizes(problem);
  std::map<Direction, Definition> definitions;
  for (Direction direction : {Direction::Forward, Direction::Transposed}) {
    Definition &definition = definitions[direction];
    definition.columnHeads = direction == Direction::Forward ? of.kvHeads : problem.heads;
    for (int64_t head = 0; head < problem.heads; ++head) {
      std::vector<oracle::Pairs> &branches = definition.heads.emplace_back();
      for (unsigned branch = 0; branch < oracle.branchCount(); ++branch)
        branches.push_back(oracle::pairsOf(oracle, problem, branch, head, direction));
    }
  }
  checkLayouts(file, of, sizes, definitions, seen);
}

} // namespace

TEST_CASE("every file in patterns/") {
  Seen all;
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    const auto file = loaded(path);
    Seen seen;
    checkCase(*file, {{4, 42, 42, 0, 0, sizesFrom(*file, 9)}, 2, {1, 2, 3, 4, 5, 6, 7, 8}, 5}, seen);
    all.steps += seen.steps, all.nothing += seen.nothing, all.everything += seen.everything, all.exact += seen.exact,
        all.counted += seen.counted, all.calls += seen.calls, all.keys += seen.keys;
  }
  CHECK(all.calls > all.steps / 40);
  CHECK(all.keys > 200);
  CHECK(all.nothing > all.steps / 10);
  CHECK(all.everything > all.steps / 20);
  CHECK(all.exact > all.steps * 3 / 4);
  CHECK(all.counted > all.steps * 9 / 10);
}

TEST_CASE("odd compositions, away from position 0") {
  for (const std::string &text : oddPatterns()) {
    CAPTURE(text);
    const auto file = parsed(text);
    Seen seen;
    checkCase(*file, {{2, 46, 46, 130, 130, sizesFrom(*file, 20)}, 1, {3, 8}, 4}, seen);
  }
}

TEST_CASE("shards shorter than a segment, as long, and not dividing it") {
  for (const char *ops :
       {"%a = attn.full %m = attn.segment %a by [24]", "%a = attn.causal %m = attn.segment %a by [24]",
        "%a = attn.window [3, 1] %b = attn.segment %a by [24] %m = attn.dilate %b by 2 at 1",
        "%a = attn.causal %b = attn.segment %a by [24] %m = attn.not %b"}) {
    CAPTURE(std::string(ops));
    const auto file = parsed(unionText(ops));
    Seen seen;
    checkCase(*file, {{1, 96, 96, 0, 0, {}}, 1, {2, 4, 5, 8}, 12}, seen);
    CHECK(seen.nothing > 0);
    CHECK(seen.counted == seen.steps);
  }
}

TEST_CASE("any list of ranges") {
  const auto file = parsed(unionText("%w = attn.window [7, 0] %c = attn.cols [2, 0] %m = attn.or %w, %c"));
  const attn::ProblemSizes sizes{1, 40, 40, 0, 0, {}};
  const ShardLayout layout{{{{0, 3}, {30, 40}}, {{3, 30}}}};
  const auto plan = ShardPlan::create({file->analysis(), sizes, layout, 1});
  REQUIRE(plan.isOk());
  CHECK(plan->step(0, 1).columns == 7);        // rows 30 to 36 look back to 23
  CHECK(plan->step(1, 0).columns == 3);        // row 3 sees rows 0 to 2
  CHECK(*plan->step(0, 1).pairs == 7 * 8 / 2); // 7 of row 30, then one fewer
  for (const auto &[wrong, words] :
       {std::pair<ShardLayout, const char *>{{{{{0, 40}}, {}}}, "rank 1 has no rows"},
        {{{{{0, 20}}, {{21, 40}}}}, "row 20 is no rank's"},
        {{{{{0, 20}}, {{19, 40}}}}, "row 19 is in two ranges"},
        {{{{{0, 20}}, {{20, 41}}}}, "rank 1, rows 20 to 41: expected an ascending range within 40 rows"},
        {{{{{0, 20}}, {{20, 39}}}}, "row 39 is no rank's"}}) {
    const auto refused = ShardPlan::create({file->analysis(), sizes, wrong, 1});
    REQUIRE(!refused.isOk());
    CHECK(refused.status().message().find(words) != std::string::npos);
  }
}

TEST_CASE("ranks without rows are refused, with what works") {
  CHECK(attn::contiguousLayout(5, 6).status().message() ==
        "contiguous layout: 5 tokens leave a part of 6 parts without rows: take at most 5 ranks");
  CHECK(attn::zigzagLayout(11, 6).status().message() ==
        "zigzag layout: 11 tokens leave a part of 12 parts without rows: take at most 5 ranks");
  CHECK(attn::stripedLayout(100, 6, 25).status().message() ==
        "striped layout: 4 stripes of 25 rows leave rank 4 of 6 without rows: take stripes of at most 16 rows");
  CHECK(!attn::contiguousLayout(5, 0).isOk());
  CHECK(!attn::contiguousLayout(int64_t(1) << 20, int64_t(1) << 15).isOk());
}

TEST_CASE("what cannot be planned says why") {
  const auto file = loaded(test::places().patterns + "/document_window.mlir");
  attn::ProblemSizes sizes{1, 96, 96, 0, 0, sizesFrom(*file, 20)};
  sizes.tensors.resize(sizes.parameters.size());
  const ShardLayout layout = attn::contiguousLayout(96, 4).take();
  CHECK(ShardPlan::create({file->analysis(), sizes, layout, 1}).status().code() == StatusCode::unsupported);
  const auto full = parsed(unionText("%m = attn.full"));
  const attn::ProblemSizes unequal{1, 96, 95, 0, 0, {}};
  CHECK(ShardPlan::create({full->analysis(), unequal, layout, 1}).status().code() == StatusCode::unsupported);
  const attn::ProblemSizes heads{3, 96, 96, 0, 0, {}};
  CHECK(ShardPlan::create({full->analysis(), heads, layout, 2}).status().code() == StatusCode::invalidArgument);
}

TEST_CASE("a million tokens on 64 ranks: zigzag and stripes are even, and a window is asked of the neighbour alone") {
  const int64_t rows = int64_t(1) << 20, ranks = 64;
  const attn::ProblemSizes sizes{8, rows, rows, 0, 0, {}};
  const ShardLayout contiguous = attn::contiguousLayout(rows, ranks).take(),
                    zigzag = attn::zigzagLayout(rows, ranks).take(),
                    striped = attn::stripedLayout(rows, ranks, attn::defaultStripe(rows, ranks)).take();
  std::vector<attn::LayoutFigures> figures;
  const auto causal = parsed(unionText("%m = attn.causal"));
  for (const ShardLayout *layout : {&contiguous, &zigzag, &striped}) {
    const auto plan = ShardPlan::create({causal->analysis(), sizes, *layout, 2});
    REQUIRE(plan.isOk());
    REQUIRE(plan->balance().has_value());
    figures.push_back({"", plan->balance(), plan->travelling()});
  }
  CHECK(*figures[0].balance > 1.9);
  CHECK(*figures[1].balance <= 1.0001);
  CHECK(*figures[2].balance <= 1.02);
  CHECK(attn::chooseLayout(figures).index == 1);
  const auto window = parsed(unionText("%m = attn.window [4095, 0]"));
  const auto plan = ShardPlan::create({window->analysis(), sizes, contiguous, 2});
  REQUIRE(plan.isOk());
  for (int64_t rank = 1; rank < ranks; ++rank)
    CHECK(plan->step(rank, rank - 1).headColumns == 2 * 4095);
  CHECK(plan->travelling() == (ranks - 1) * 2 * 4095);
}

TEST_CASE("heads on their own residues ask for their own keys") {
  const auto file = parsed(unionText("%a = attn.causal %m = attn.dilate %a by 4 rule(modulo)"));
  const attn::ProblemSizes sizes{8, 64, 64, 0, 0, {}};
  const ShardLayout layout = attn::contiguousLayout(64, 2).take();
  const auto alone = ShardPlan::create({file->analysis(), sizes, layout, 8});
  REQUIRE(alone.isOk());
  CHECK(alone->step(1, 0).columns == 32);
  CHECK(alone->step(1, 0).headColumns == 8 * 8);
  const auto shared = ShardPlan::create({file->analysis(), sizes, layout, 4});
  REQUIRE(shared.isOk());
  CHECK(shared->step(1, 0).headColumns == 4 * 16);
}

TEST_CASE(
    "chosen layouts: the least that travels among those known to be fast or even, among all if nothing is known") {
  CHECK(attn::chooseLayout({{"a", 1.0, 10}, {"b", 1.01, 9}, {"c", 1.5, 1}}).index == 1);
  CHECK(attn::chooseLayout({{"a", 1.0, 10}, {"b", 1.0, 10}}).index == 0);
  CHECK(attn::chooseLayout({{"a", std::nullopt, 10}, {"b", std::nullopt, 9}, {"c", 1.0, 11}}).index == 2);
  CHECK(attn::chooseLayout({{"a", std::nullopt, 10}, {"b", std::nullopt, 9}}).index == 1);
  CHECK(attn::chooseLayout({{"a", 1.0, 10, 3.0}, {"b", 1.5, 9, 2.0}, {"c", 1.0, 8, 2.1}}).index == 1);
}

TEST_CASE("chosen layouts: unequal parts only where none of equal ones are as fast") {
  const attn::LayoutChoice even =
      attn::chooseLayout({{"a", 1.0, 10, 2.1}, {"b", 1.0, 9, 2.0, true}, {"c", 1.0, 11, 2.01}});
  CHECK(even.index == 2);
  CHECK(even.why.find("of equal parts within 2%") != std::string::npos);
  const attn::LayoutChoice uneven =
      attn::chooseLayout({{"a", 1.0, 1, 2.1}, {"b", 1.0, 9, 2.01, true}, {"c", 1.0, 8, 2.0, true}});
  CHECK(uneven.index == 2);
  CHECK(uneven.why.find("of which none has equal parts") != std::string::npos);
}
