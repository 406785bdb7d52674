// Ranks in teams that exchange heads, and share the sequence among teams: every pattern of the library whose heads are alike,
// forward and gradients, against one call; plans against those of as many ranks as there are teams; bytes that travel.
#include "support/Places.h"
#include "group_post.h"

#include <numeric>
#include <random>

using namespace heddle::test;

namespace {

constexpr uint64_t kFloat = 4;

struct Teams {
  int32_t ranks, headRanks;
  HeadCounts heads = {};

  std::string form(const char *between) const { return "ulysses" + std::to_string(headRanks) + "+" + between; }
  // Of a member; those of k and v may be one that several members have.
  HeadCounts ofMember() const { return {heads.q / headRanks, std::max<int64_t>(1, heads.kv / headRanks)}; }
};
constexpr Teams kTeams[] = {{4, 2}, {6, 2}, {6, 3, {6, 3}}, {6, 3, {3, 1}}, {8, 2}, {8, 4}};

const char *const kLayouts[] = {"zigzag", "contiguous", "striped:10"};

/// Ranges of random lengths, dealt out at random, at least one to each rank.
std::string randomLayout(std::mt19937 &dice, int64_t rows, int32_t ranks) {
  std::vector<int64_t> cuts(size_t(rows) - 1);
  std::iota(cuts.begin(), cuts.end(), 1);
  std::shuffle(cuts.begin(), cuts.end(), dice);
  cuts.resize(size_t(ranks) * 3 - 1);
  cuts.push_back(0), cuts.push_back(rows);
  std::sort(cuts.begin(), cuts.end());
  std::vector<int32_t> owners(cuts.size() - 1);
  for (size_t i = 0; i < owners.size(); ++i)
    owners[i] = i < size_t(ranks) ? int32_t(i) : int32_t(dice() % uint32_t(ranks));
  std::shuffle(owners.begin(), owners.end(), dice);
  std::vector<Ranges> layout(static_cast<size_t>(ranks));
  for (size_t i = 0; i < owners.size(); ++i)
    if (Ranges &own = layout[size_t(owners[i])]; !own.empty() && own.back().second == cuts[i])
      own.back().second = cuts[i + 1];
    else
      own.push_back({cuts[i], cuts[i + 1]});
  std::string text;
  for (const Ranges &own : layout) {
    text += text.empty() ? "" : ";";
    for (const auto &[first, last] : own)
      text += (&first == &own.front().first ? "" : ",") + std::to_string(first) + ":" + std::to_string(last);
  }
  return text;
}

/// The rows of each team of a plan, as a layout of that many ranks, found row by row.
std::string layoutOfTeams(const PlanFacts &facts, int32_t headRanks, int64_t rows) {
  std::vector<size_t> teamOf(static_cast<size_t>(rows));
  for (size_t rank = 0; rank < facts.ranks.size(); ++rank)
    for (const auto &[first, last] : facts.ranks[rank])
      std::fill(teamOf.begin() + first, teamOf.begin() + last, rank / size_t(headRanks));
  std::string text;
  for (size_t team = 0; team < facts.ranks.size() / size_t(headRanks); ++team) {
    std::string ranges;
    for (size_t row = 0; row < teamOf.size(); ++row)
      if (teamOf[row] == team && (row == 0 || teamOf[row - 1] != team)) {
        const size_t end =
            size_t(std::find_if(teamOf.begin() + ptrdiff_t(row), teamOf.end(), [&](size_t of) { return of != team; }) -
                   teamOf.begin());
        ranges += (ranges.empty() ? "" : ",") + std::to_string(row) + ":" + std::to_string(end);
      }
    text += (team ? ";" : "") + ranges;
  }
  return text;
}

/// Rows of k that leave a rank for another of its team, each as often as heads of it do, counted head by head.
int64_t exchangedKeys(const PlanFacts &facts, const Teams &teams) {
  int64_t count = 0;
  for (size_t rank = 0; rank < facts.ranks.size(); ++rank)
    for (int32_t member = 0; member < teams.headRanks; ++member) {
      std::vector<bool> needs(size_t(teams.heads.kv), false);
      for (int64_t head = 0; head < teams.heads.q; ++head)
        if (head * teams.headRanks / teams.heads.q == member)
          needs[size_t(head * teams.heads.kv / teams.heads.q)] = true;
      for (const auto &[first, last] : facts.ranks[rank])
        if (int32_t(rank) % teams.headRanks != member)
          count += (last - first) * std::count(needs.begin(), needs.end(), true);
    }
  return count;
}

std::string behind(const std::string &text, const std::string &words) {
  const size_t at = text.find(words);
  REQUIRE_MESSAGE(at != std::string::npos, text);
  return text.substr(at);
}

} // namespace

TEST_CASE("every pattern whose heads are alike over teams is what one call computes, forward and gradients") {
  constexpr int64_t kRows = 131;
  size_t taken = 0;
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    const std::unique_ptr<Case> of = caseOf(path, kRows, /*small=*/true);
    if (!of || !planIfAny(*of, kRows, 2, "contiguous", "ulysses"))
      continue;
    for (const Teams &teams : kTeams) {
      of->heads = teams.heads;
      const Share whole = wholeCall(*of, kRows);
      for (const char *between : {"gather", "ring"})
        for (const char *layout : kLayouts) {
          const std::string form = teams.form(between);
          CAPTURE(teams.ranks);
          CAPTURE(form);
          CAPTURE(std::string(layout));
          checkAlike(overRanks(*of, whole, planOf(*of, kRows, teams.ranks, layout, form.c_str()).get()), whole);
          ++taken;
        }
    }
  }
  CHECK(taken >= 20 * 36); // patterns, and teams in two forms and three layouts
}

TEST_CASE("all ranks in one team are ulysses, and teams of one are a gather or a ring") {
  const std::unique_ptr<Case> causal =
      caseOfText("attn.pattern @p() { %m = attn.causal attn.softmax union(%m) sink 0.5 }");
  for (const char *layout : kLayouts)
    for (int32_t ranks : {2, 4}) { // of 4 heads, 2 of k and v
      const std::string text = checked(*causal, 131, ranks, layout, "ulysses");
      expect(text, "\nteams " + std::to_string(ranks) + "\nwalk forward\nblocks 0:131\nstep\n");
      CHECK(textOf(planOf(*causal, 131, ranks, layout, Teams{ranks, ranks}.form("ring").c_str()).get()) == text);
      for (const char *form : {"gather", "ring"})
        CHECK(textOf(planOf(*causal, 131, ranks, layout, Teams{ranks, 1}.form(form).c_str()).get()) ==
              textOf(planOf(*causal, 131, ranks, layout, form).get()));
    }
}

TEST_CASE("walks of teams are those of as many ranks with their rows, of the heads of a member, however rows lie") {
  constexpr int64_t kRows = 257;
  std::mt19937 dice(11);
  for (const char *mask : {"%m = attn.causal", "%m = attn.full", "%m = attn.window [20, 3]",
                           "%c = attn.causal %m = attn.dilate %c by 4 at 1",
                           "%w = attn.window [3, 3] %r = attn.rows [4, 0] %m = attn.or %w, %r"})
    for (const char *end : {"", " gradient(detached)"})
      for (const Teams &teams : kTeams)
        for (const char *between : {"gather", "ring"}) {
          const std::string pattern =
              std::string("attn.pattern @p() { ") + mask + " attn.softmax union(%m)" + end + " }";
          CAPTURE(pattern);
          CAPTURE(teams.form(between));
          const std::unique_ptr<Case> of = caseOfText(pattern.c_str(), teams.heads),
                                      ofMember = caseOfText(pattern.c_str(), teams.ofMember());
          const std::string layout = randomLayout(dice, kRows, teams.ranks);
          const PlanHandle plan = planOf(*of, kRows, teams.ranks, layout, teams.form(between).c_str());
          const PlanFacts facts = factsOf(plan.get());
          const PlanHandle walks = planOf(*ofMember, kRows, teams.ranks / teams.headRanks,
                                          layoutOfTeams(facts, teams.headRanks, kRows), between);
          CHECK(behind(textOf(plan.get()), "\nwalk forward") == behind(textOf(walks.get()), "\nwalk forward"));
          CHECK(facts.headRows == exchangedKeys(facts, teams) + teams.headRanks * factsOf(walks.get()).headRows);
        }
}

TEST_CASE("rows of teams lie anywhere, and results are those of one call") {
  constexpr int64_t kRows = 200;
  std::mt19937 dice(5);
  const std::unique_ptr<Case> of = caseOf(places().patterns + "/sliding_window.mlir", kRows, /*small=*/true);
  REQUIRE(of);
  for (const Teams &teams : kTeams)
    for (const char *between : {"gather", "ring"}) {
      CAPTURE(teams.form(between));
      of->heads = teams.heads;
      const Share whole = wholeCall(*of, kRows);
      const std::string layout = randomLayout(dice, kRows, teams.ranks);
      CAPTURE(layout);
      checkAlike(overRanks(*of, whole, planOf(*of, kRows, teams.ranks, layout, teams.form(between).c_str()).get()),
                 whole);
    }
}

TEST_CASE("bytes that travel are those of the heads of other members, and of the walks of all members") {
  constexpr int64_t kRows = 600;
  const char *front = "attn.pattern @p() { %w = attn.window [3, 3] %r = attn.rows [4, 0] "
                      "%m = attn.or %w, %r attn.softmax union(%m) }";
  for (const Teams &teams : {Teams{4, 4}, Teams{4, 2}, Teams{8, 2}, Teams{6, 3, {6, 3}}, Teams{8, 4}})
    for (const char *between : {"gather", "ring"}) {
      CAPTURE(teams.form(between));
      const std::unique_ptr<Case> of = caseOfText(front, teams.heads), ofMember = caseOfText(front, teams.ofMember());
      const PlanHandle plan = planOf(*of, kRows, teams.ranks, "zigzag", teams.form(between).c_str());
      const PlanFacts facts = factsOf(plan.get());
      const PlanHandle walks = planOf(*ofMember, kRows, teams.ranks / teams.headRanks,
                                      layoutOfTeams(facts, teams.headRanks, kRows), between);
      const uint64_t leave = uint64_t(kRows * teams.heads.q * (teams.headRanks - 1) / teams.headRanks),
                     keysLeave = uint64_t(exchangedKeys(facts, teams)), members = uint64_t(teams.headRanks);
      // q and out with lse; k and v.
      CHECK(bytesOfCall(*of, kRows, plan.get(), false) ==
            (leave * (2 * kDim + 1) + keysLeave * 2 * kDim) * kFloat +
                members * bytesOfCall(*ofMember, kRows, walks.get(), false));
      // q, d_out, out, lse and d_lse; d_q; k and v there, their gradients back.
      CHECK(bytesOfCall(*of, kRows, plan.get(), true) ==
            (leave * (4 * kDim + 2) + keysLeave * 4 * kDim) * kFloat +
                members * bytesOfCall(*ofMember, kRows, walks.get(), true));
    }
}
