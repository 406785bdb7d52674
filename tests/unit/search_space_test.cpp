// Promises of tuner/Space/SearchSpace.h: what is feasible and why not, text and digest.
#include "support/TestSpace.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace heddle;
using namespace heddle::tuner;

namespace {

std::vector<Knob> tileKnobs() {
  return {numbersKnob("block_m", {64, 128, 192}, "rows of a query tile"),
          numbersKnob("stages", {1, 2, 3, 4}, "tiles in flight"),
          namesKnob("order", {"linear", "longest", "snake"}, "order of the work items")};
}

Constraint smemLimit() {
  return {"smem", [](const PointValues &point) -> std::optional<std::string> {
            const int64_t need = point["block_m"] * point["stages"];
            if (need <= 384)
              return std::nullopt;
            return "need " + std::to_string(need) + ", at most 384";
          }};
}

Constraint snakeNeedsStages() {
  return {"snake", [](const PointValues &point) -> std::optional<std::string> {
            if (point["order"] != 2 || point["stages"] > 1)
              return std::nullopt;
            return std::string("needs 2 stages");
          }};
}

SearchSpace tileSpace() { return spaceOf("tiles", tileKnobs(), {smemLimit(), snakeNeedsStages()}).take(); }

std::string refusalOf(const std::vector<Knob> &knobs) {
  Result<SearchSpace> space = spaceOf("tiles", knobs);
  REQUIRE_FALSE(space.isOk());
  CHECK(space.status().code() == StatusCode::invalidArgument);
  return space.status().message();
}

} // namespace

TEST_CASE("enumeration keeps exactly the points that every constraint accepts") {
  const SearchSpace space = tileSpace();
  Result<Enumeration> all = space.enumerate();
  REQUIRE(all.isOk());
  CHECK(space.rawSize() == 36);
  CHECK(all->examined == 36);

  std::set<Point> expected;
  for (uint32_t m = 0; m < 3; ++m)
    for (uint32_t s = 0; s < 4; ++s)
      for (uint32_t o = 0; o < 3; ++o)
        if ((m + 1) * 64 * (s + 1) <= 384 && !(o == 2 && s == 0))
          expected.insert(Point{{m, s, o}});
  CHECK(std::set<Point>(all->points.begin(), all->points.end()) == expected);
  CHECK(all->points.size() == expected.size());
  CHECK(std::is_sorted(all->points.begin(), all->points.end()));

  REQUIRE(all->refused.size() == 2);
  CHECK(all->refused[0] == std::make_pair(std::string("smem"), uint64_t(9)));
  CHECK(all->refused[1] == std::make_pair(std::string("snake"), uint64_t(3)));
  CHECK(all->points.size() + 9 + 3 == 36);
}

TEST_CASE("a refused point says which constraint and which numbers") {
  const SearchSpace space = tileSpace();
  CHECK(space.whyInfeasible(space.parse("block_m=192 stages=4 order=linear").take()) ==
        std::optional<std::string>("smem: need 768, at most 384"));
  CHECK(space.whyInfeasible(space.parse("block_m=64 stages=1 order=snake").take()) ==
        std::optional<std::string>("snake: needs 2 stages"));
  CHECK_FALSE(space.whyInfeasible(space.parse("block_m=64 stages=2 order=snake").take()));
  CHECK(space.whyInfeasible(Point{{0, 0}}).has_value());
  CHECK(space.whyInfeasible(Point{{0, 9, 0}}).has_value());
}

TEST_CASE("refusals whose names were not announced are counted, too") {
  const std::vector<Knob> knobs = tileKnobs();
  const Constraint smem = smemLimit(), snake = snakeNeedsStages();
  auto judge = [=](const Point &point) -> std::optional<Refusal> {
    for (const Constraint &rule : {smem, snake})
      if (auto reason = rule.reason({knobs, point}))
        return Refusal{rule.name, *reason};
    return std::nullopt;
  };
  auto refused = SearchSpace::create("tiles", knobs, judge, {})->enumerate()->refused; // as they come
  const auto expected = tileSpace().enumerate()->refused;
  CHECK(std::is_permutation(refused.begin(), refused.end(), expected.begin(), expected.end()));
  CHECK_FALSE(SearchSpace::create("tiles", knobs, Judge(), {}).isOk());
}

TEST_CASE("text and parse are inverses on every feasible point") {
  const SearchSpace space = tileSpace();
  std::set<std::string> texts, digests;
  const Enumeration all = space.enumerate().take();
  for (const Point &point : all.points) {
    Result<Point> back = space.parse(space.text(point));
    REQUIRE(back.isOk());
    CHECK(*back == point);
    texts.insert(space.text(point));
    digests.insert(space.digest(point));
  }
  CHECK(texts.size() == all.points.size());
  CHECK(digests.size() == all.points.size());
  CHECK(*space.parse(" order=snake  block_m=64 stages=2 ") == *space.parse("block_m=64 stages=2 order=snake"));
}

TEST_CASE("parse says what it expected") {
  const SearchSpace space = tileSpace();
  auto message = [&](const char *text) { return space.parse(text).status().message(); };
  CHECK(message("block_m=96 stages=1 order=snake") == "point: 'block_m=96': expected one of 64, 128, 192");
  CHECK(message("blockm=64") == "point: 'blockm=64': search space 'tiles' has no such knob");
  CHECK(message("stages") == "point: 'stages': expected <knob>=<value>");
  CHECK(message("stages=1 stages=1") == "point: 'stages=1': the knob is given twice");
  CHECK(message("stages=1 order=snake") == "point: no value for knob 'block_m' in 'stages=1 order=snake'");
}

TEST_CASE("a point keeps its digest when knobs are reordered or gain values") {
  const SearchSpace space = tileSpace();
  std::vector<Knob> knobs = tileKnobs();
  std::rotate(knobs.begin(), knobs.begin() + 1, knobs.end());
  knobs.back() = numbersKnob("block_m", {32, 64, 128, 192}, "rows of a query tile");
  const SearchSpace other = spaceOf("tiles", knobs).take();
  const char *text = "block_m=128 stages=2 order=longest";
  CHECK(space.digest(space.parse(text).take()) == other.digest(other.parse(text).take()));
  CHECK(space.digest(space.parse(text).take()).size() == 64);
}

TEST_CASE(
    "a knob that is added renames no point and loses none, where its initial value says what texts without it mean") {
  const SearchSpace before = tileSpace();
  std::vector<Knob> knobs = tileKnobs();
  knobs.push_back(numbersKnob("parts", {0, 4, 8}, "parts of an item"));
  knobs.back().initial = 4;
  const SearchSpace after = spaceOf("tiles", knobs).take();
  const char *text = "block_m=128 stages=2 order=longest";
  const Result<Point> point = after.parse(text);
  REQUIRE_MESSAGE(point.isOk(), point.status().message());
  CHECK(*point == *after.parse(std::string(text) + " parts=4"));
  CHECK(after.digest(*point) == before.digest(before.parse(text).take()));
  CHECK(after.digest(*point) != after.digest(after.parse(std::string(text) + " parts=0").take()));
  knobs.back().initial = 5; // no value of the knob
  CHECK_FALSE(spaceOf("tiles", knobs)->parse(text).isOk());
}

TEST_CASE("a malformed space is refused with the knob's name") {
  const Knob good = numbersKnob("stages", {1, 2}, "");
  CHECK(refusalOf({}).find("no knobs") != std::string::npos);
  CHECK(refusalOf({good, good}).find("'stages' is given twice") != std::string::npos);
  CHECK(refusalOf({numbersKnob("a=b", {1}, "")}).find("'a=b'") != std::string::npos);
  CHECK(refusalOf({numbersKnob("none", {}, "")}).find("'none' has no values") != std::string::npos);
  CHECK(refusalOf({numbersKnob("twice", {3, 3}, "")}).find("the value '3' twice") != std::string::npos);
  CHECK(refusalOf({namesKnob("names", {"two words"}, "")}).find("'two words'") != std::string::npos);
}

TEST_CASE("a space too large to walk is refused, and its size does not overflow") {
  std::vector<int64_t> values(1000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = int64_t(i);
  std::vector<Knob> knobs;
  for (int i = 0; i < 8; ++i)
    knobs.push_back(numbersKnob("k" + std::to_string(i), values, ""));
  const SearchSpace space = spaceOf("huge", knobs).take();
  CHECK(space.rawSize() == UINT64_MAX);
  Result<Enumeration> all = space.enumerate();
  REQUIRE_FALSE(all.isOk());
  CHECK(all.status().code() == StatusCode::invalidArgument);
}

TEST_CASE("a walk asks the screen, which gives no reasons, and counts what it refuses") {
  int judged = 0;
  const std::string rule = "odd";
  auto judge = [&](const Point &point) -> std::optional<Refusal> {
    ++judged;
    return point.index[0] % 2 ? std::optional(Refusal{rule, "is odd"}) : std::nullopt;
  };
  auto screen = [&](const Point &point) { return point.index[0] % 2 ? &rule : nullptr; };
  auto space = SearchSpace::create("s", {numbersKnob("a", {0, 1, 2, 3, 4}, "")}, judge, {rule}, screen);
  REQUIRE_MESSAGE(space.isOk(), space.status().message());
  const auto all = space->enumerate();
  REQUIRE(all.isOk());
  CHECK(all->points.size() == 3);
  CHECK(all->examined == 5);
  REQUIRE(all->refused.size() == 1);
  CHECK(all->refused[0] == std::make_pair(rule, uint64_t(2)));
  CHECK(judged == 0);
  CHECK(space->whyInfeasible(space->parse("a=1").take()) == "odd: is odd");
}
