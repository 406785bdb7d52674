// Predicted times against arithmetic by hand: of one step, of a whole call, forward and backward, in all three schemes.
#include "ring_fixture.h"
#include "support/PatternFiles.h"

#include <algorithm>

using namespace heddle;
using namespace heddle::test;
using namespace heddle::views;

namespace {

double msOf(const RingPlan &ring, const std::string &name) {
  for (const RingScheme &scheme : ring.times.schemes)
    if (scheme.name == name)
      return scheme.ms.value_or(-1);
  return -2;
}

constexpr double kKeys = 16 * 4 * 128 / 1e6;                   ///< ms of the keys of a rank over a link
constexpr double kExchange = 16 * (4 * 32 + 2 * 64) * 2 / 1e6; ///< of half of the heads of a rank's rows, to one other
constexpr double kHome = 16 * 4 * 32 * 2 / 1e6;
constexpr double kPairs = 16 * 16 * 8 * 4 * 32 / 1e6; ///< ms of a step of which all pairs are kept, forward

} // namespace

TEST_CASE("all pairs kept: a ring hides what is shorter than a step, and waits for the rest") {
  const auto full = parsed(unionText("%m = attn.full"));
  const auto fast = planned(*full, requestOf(1e-3));
  CHECK(msOf(*fast, "ring") == doctest::Approx(4 * kPairs));
  CHECK(msOf(*fast, "all-gather") == doctest::Approx(3 * kKeys + 4 * kPairs));
  // A token has 8 * 32 channels of q and of out, 4 * 64 of k and v, in 2 bytes; 3 of 4 parts of 16 tokens leave.
  CHECK(msOf(*fast, "ulysses") == doctest::Approx(4 * kPairs + 12 * (512 + 512 + 512) / 1e6));
  CHECK(fast->times.schemes[*fast->times.best].name == std::string("ring"));
  CHECK(*fast->times.gain == doctest::Approx((kExchange + kHome) / (4 * kPairs))); // of teams of two
  const auto slow = planned(*full, requestOf(1));
  CHECK(msOf(*slow, "ring") == doctest::Approx(3 * kKeys + kPairs / 1000));
  CHECK(slow->times.ranks[0].waiting == 3);
  CHECK(slow->times.ranks[0].waitMs() == doctest::Approx(3 * (kKeys - kPairs / 1000)));
  CHECK(slow->times.schemes[*slow->times.best].name == std::string("ulysses"));
}

TEST_CASE("a message costs its latency, of which an all-gather has three, an all-to-all one") {
  const auto full = parsed(unionText("%m = attn.full"));
  const auto free = planned(*full, requestOf(1)), late = planned(*full, requestOf(1, 50));
  CHECK(msOf(*late, "ring") - msOf(*free, "ring") == doctest::Approx(3 * 0.05));
  CHECK(msOf(*late, "all-gather") - msOf(*free, "all-gather") == doctest::Approx(3 * 0.05));
  CHECK(msOf(*late, "ulysses") - msOf(*free, "ulysses") == doctest::Approx(2 * 0.05));
}

TEST_CASE("gradients of keys go home in fp32 behind the next step, the last ones behind all") {
  const auto full = parsed(unionText("%m = attn.full"));
  RingRequest request = requestOf(1e3);
  request.call.kind = {KindBase::backward};
  const auto ring = planned(*full, request);
  // Slots move keys, keys, keys and gradients, gradients, gradients: of 4 bytes to 2.
  CHECK(msOf(*ring, "ring") == doctest::Approx((2 * 1 + 3 + 2 * 2) * kKeys).epsilon(1e-3));
  CHECK(ring->times.ranks[2].receives == 3 * 16 * 4 * (128 + 256));
  CHECK(msOf(*ring, "all-gather") == doctest::Approx(9 * kKeys).epsilon(1e-3));
}

TEST_CASE("what is not kept is neither sent nor waited for; what is sent is received") {
  const auto causal = parsed(unionText("%m = attn.causal"));
  const auto ring = planned(*causal, requestOf(1e-3, 50));
  CHECK(ring->times.ranks[0].receives == 0);
  CHECK(ring->times.ranks[3].receives == 3 * 16 * 4 * 128);
  CHECK(ring->times.ranks[3].sends == 0);
  attn::WideInt sent = 0, received = 0;
  for (const RankTime &rank : ring->times.ranks)
    sent += rank.sends, received += rank.receives;
  CHECK(sent == received);
  CHECK(sent == ring->plan->travelling() * 128);
  const std::vector<RingSlot> slots = ringSlots(*ring->plan, requestOf(1e-3, 50).call, 1);
  REQUIRE(slots.size() == 5);
  CHECK(slots[1].peer == 0);
  CHECK(slots[2].computeMs == 0);
  CHECK(slots[4].ms() == 0);
  const auto segments = parsed(unionText("%a = attn.full %m = attn.segment %a by [16]"));
  const auto alone = planned(*segments, requestOf(1e-3, 50));
  CHECK(msOf(*alone, "ring") == doctest::Approx(kPairs));
}

TEST_CASE("heads that ranks do not divide are not exchanged") {
  const auto full = parsed(unionText("%m = attn.full"));
  RingRequest request = requestOf(1);
  request.ranks = 16;
  const auto ring = planned(*full, request);
  CHECK(!ring->times.schemes[2].ms);
  CHECK(ring->times.schemes[2].whyNot ==
        "16 ranks do not divide the 8 heads, or neither divide the 4 of k and v nor are a "
        "multiple of them");
  const std::vector<std::string> names = {"ring",          "all-gather",    "ulysses",
                                          "ulysses2+ring", "ulysses4+ring", "ulysses8+ring"};
  REQUIRE(ring->times.schemes.size() == names.size());
  for (size_t i = 0; i < names.size(); ++i)
    CHECK(ring->times.schemes[i].name == names[i]);
  const auto alibi = parsed("attn.pattern @p() { %m = attn.full %s = attn.scaled %t = attn.alibi %s "
                            "attn.softmax union(%m) of %t }");
  CHECK(planned(*alibi, request)->times.schemes.size() == 3);
}

TEST_CASE("between teams that exchange heads a ring has fewer steps, of more rows and fewer heads") {
  const auto full = parsed(unionText("%m = attn.full"));
  const auto fast = planned(*full, requestOf(1e-3)), slow = planned(*full, requestOf(1));
  CHECK(msOf(*fast, "ulysses2+ring") == doctest::Approx(kExchange + 4 * kPairs + kHome));
  CHECK(msOf(*slow, "ulysses2+ring") == doctest::Approx(kExchange + kKeys + 2 * kPairs / 1000 + kHome));
  RingRequest request = requestOf(1, 50);
  request.call.kind = {KindBase::backward};
  // q, k, v, out and d_out; keys of the other team, then gradients in fp32; d_q, d_k and d_v.
  CHECK(msOf(*planned(*full, request), "ulysses2+ring") ==
        doctest::Approx(kExchange + 2 * kHome + 3 * kKeys + kExchange + 4 * 0.05 + 2.5 * 2 * kPairs / 1000)
            .epsilon(1e-3));
}

TEST_CASE("what goes within a host goes over its links, beside what goes beyond") {
  const auto full = parsed(unionText("%m = attn.full"));
  RingRequest request = requestOf(1);
  request.call.rates.hostRanks = 2, request.call.rates.hostGBps = 10, request.call.rates.hostLatencyUs = 0.1;
  const auto two = planned(*full, request);
  const double tail = kPairs / 1000;
  CHECK(msOf(*two, "ring") == doctest::Approx(3 * kKeys + tail)); // in each step some rank asks another host
  CHECK(msOf(*two, "all-gather") == doctest::Approx(2 * kKeys + 4 * tail));
  CHECK(msOf(*two, "ulysses2+ring") == doctest::Approx((kExchange + kHome) / 10 + 2 * 0.0001 + kKeys + 2 * tail));
  CHECK(two->times.schemes[*two->times.best].name == "ulysses2+ring");
  CHECK(two->headRanks() == 2);
  request.call.rates.hostRanks = 4;
  const auto one = planned(*full, request);
  CHECK(msOf(*one, "ring") == doctest::Approx(3 * (kKeys / 10 + 0.0001) + tail));
  CHECK(msOf(*one, "all-gather") == doctest::Approx(3 * (kKeys / 10 + 0.0001) + 4 * tail));
  request.call.rates.hostRanks = 3; // teams are not within hosts, nor all of their rings
  CHECK(msOf(*planned(*full, request), "ulysses2+ring") == doctest::Approx(kExchange + kHome + kKeys + 2 * tail));
}

namespace {

GroupTime planTime(const PatternFile &file, const RingRequest &request, const std::string &form) {
  const auto ring = planned(file, request);
  addGroupTimes(file, request, *ring);
  for (const GroupForecast &group : ring->groups)
    if (group.form == form)
      return group.time;
  return {};
}

} // namespace

TEST_CASE("a plan that gathers waits for the first keys where all rows need them, and for sums that go home") {
  const auto full = parsed(unionText("%m = attn.full"));
  const GroupTime gather = planTime(*full, requestOf(1e-3), "gather");
  REQUIRE(gather.ms);
  CHECK(*gather.ms == doctest::Approx(3 * kKeys + 4 * kPairs));
  CHECK(gather.ranks[1].firstWaitMs == doctest::Approx(3 * kKeys));
  CHECK(gather.ranks[1].waitMs == doctest::Approx(3 * kKeys));
  CHECK(gather.ranks[1].waitingRows == 16);
  CHECK(gather.ranks[1].launches == 1);
  CHECK(gather.ranks[1].messages == 1);
  RingRequest request = requestOf(1e-3);
  request.call.kind = {KindBase::backward};
  CHECK(*planTime(*full, request, "gather").ms == doctest::Approx(9 * kKeys + 2.5 * 4 * kPairs));
}

TEST_CASE("rows that are no run of bytes are packed and unpacked by launches of their own") {
  const auto full = parsed(unionText("%m = attn.full"));
  RingRequest request = requestOf(1e-3);
  request.call.rates.launchUs = 10;
  const double follows = 0.01 / 4;
  CHECK(planTime(*full, request, "gather").ranks[1].firstWaitMs == doctest::Approx(3 * kKeys + 2 * follows));
  request.layout = "zigzag"; // two runs of each rank; its own are packed in front of what it computes
  CHECK(planTime(*full, request, "gather").ranks[1].firstWaitMs == doctest::Approx(3 * kKeys + 3 * follows));
}

TEST_CASE("launches beside a message end later by its time; further ones cost their own, and what they leave in fp32") {
  const auto full = parsed(unionText("%m = attn.full"));
  RingRequest request = requestOf(1e-3);
  CHECK(*planTime(*full, request, "ring").ms == doctest::Approx(3 * kKeys + 4 * kPairs));
  request.call.rates.launchUs = 10;
  CHECK(*planTime(*full, request, "ring").ms == doctest::Approx(3 * kKeys + 4 * kPairs + 3 * 0.01));
  request.call.rates.memoryGBps = 1 / 0.87; // of which 1 GB/s is written and read
  const double carry = 16 * 8 * (32 + 1) * 4 / 1e6;
  const GroupTime ring = planTime(*full, request, "ring");
  CHECK(*ring.ms == doctest::Approx(3 * kKeys + 4 * kPairs + 3 * (0.01 + carry)));
  CHECK(ring.ranks[2].besideMs == doctest::Approx(3 * kKeys));
  CHECK(ring.ranks[2].waitMs == 0);
}

TEST_CASE("a launch lasts as its longest tile of rows, by which at most messages delay it") {
  const auto full = parsed(unionText("%m = attn.full"));
  RingRequest request = requestOf(1e-3);
  const double tile = 128 * 16 * 4 * 32 / 1e9; // a ring's launch meets 16 keys; at a TFLOP/s
  request.call.rates.tileTflops = 1e-4;
  CHECK(*planTime(*full, request, "ring").ms == doctest::Approx(4 * tile / 1e-4 + 3 * kKeys));
  request.call.rates.tileTflops = 1;
  CHECK(*planTime(*full, request, "ring").ms == doctest::Approx(4 * kPairs + 3 * tile));
}

TEST_CASE("ranks that ask each other for nothing have no message") {
  const auto segments = parsed(unionText("%a = attn.full %m = attn.segment %a by [16]"));
  const GroupTime alone = planTime(*segments, requestOf(1e-3, 50), "gather");
  CHECK(*alone.ms == doctest::Approx(kPairs));
  CHECK(alone.ranks[3].messages == 0);
  CHECK(alone.ranks[3].waitingRows == 0);
  RingRequest few = requestOf(1);
  few.ranks = 2, few.sizes.mostEvaluations = 0;
  CHECK(planTime(*parsed(unionText("%m = attn.causal")), few, "gather").whyNot == "kept pairs are unknown");
}

const char *const kOfBounds[] = {"%m = attn.causal",
                                 "%m = attn.full",
                                 "%m = attn.window [9, 0]",
                                 "%w = attn.window [3, 3] %r = attn.rows [2, 0] %m = attn.or %w, %r",
                                 "%w = attn.window [3, 3] %c = attn.cols [2, 0] %m = attn.or %w, %c",
                                 "%c = attn.causal %m = attn.dilate %c by 3 at 1"};

struct Bounded {
  GroupTime time; ///< of the plan
  double leastMs = 0;
};

Bounded boundedOf(const PatternFile &file, const RingRequest &request, const RingPlan &ring, const TeamForm &form) {
  attn::GroupPlanRequest group{file.analysis(), request.sizes, ring.layout};
  group.kvHeads = request.call.kvHeads;
  group.form = form.form, group.headRanks = form.headRanks;
  const auto bounds = attn::boundsOf(group);
  const auto plan = attn::makeGroupPlan(group);
  REQUIRE_MESSAGE(bounds.isOk(), bounds.status().message());
  REQUIRE_MESSAGE(plan.isOk(), plan.status().message());
  return {groupTime(*plan, request.call, group.analysis, group.sizes),
          leastMs(*bounds, request.call, group.analysis, group.sizes, form.headRanks)};
}

TEST_CASE("no plan takes less than what is said before it is made") {
  int exact = 0;
  for (const char *text : kOfBounds) {
    const auto file = parsed(unionText(text));
    for (const char *layout : {"contiguous", "zigzag", "striped"})
      for (int64_t ranks : {2, 4, 8})
        for (const std::pair<double, double> &rates :
             {std::pair(1e-4, 0.0), std::pair(1e-4, 1e-5), std::pair(1.0, 0.0), std::pair(1.0, 0.1)}) {
          RingRequest request = requestOf(rates.first, 5);
          request.call.rates.tileTflops = rates.second;
          request.ranks = ranks, request.layout = layout, request.stripe = 16;
          request.sizes.seqlenQ = request.sizes.seqlenK = 419;
          request.call.rates.launchUs = 7;
          request.call.rates.hostRanks = ranks / 2, request.call.rates.hostGBps = 3;
          const auto ring = planned(*file, request);
          for (const TeamForm &form : {TeamForm{attn::GroupForm::Gather, 1}, TeamForm{attn::GroupForm::Ring, 1},
                                       TeamForm{attn::GroupForm::Gather, 2}, TeamForm{attn::GroupForm::Ring, 2}}) {
            const Bounded each = boundedOf(*file, request, *ring, form);
            INFO(std::string(text) << " " << std::string(layout) << " of " << ranks << " " << nameOf(form, ranks)
                                   << " at " << rates.first << ", a tile at " << rates.second);
            REQUIRE(each.time.ms);
            CHECK(each.leastMs <= *each.time.ms * (1 + 1e-9));
            exact += each.leastMs > 0.9 * *each.time.ms;
          }
        }
  }
  CHECK(exact > 40); // of 864: they say something
}

TEST_CASE("of many ranks forms are compared, and those that are not planned would take longer") {
  const auto causal = parsed(unionText("%m = attn.causal"));
  RingRequest request = requestOf(1, 5);
  request.ranks = 96, request.layout = "zigzag";
  request.sizes.seqlenQ = request.sizes.seqlenK = 96 * 16;
  request.call.rates.launchUs = 40;
  const auto ring = planned(*causal, request);
  addGroupTimes(*causal, request, *ring);
  const GroupForecast *best = ring->bestOfPlans();
  REQUIRE(best);
  int left = 0;
  for (const GroupForecast &each : ring->groups) {
    if (each.time.ms || each.time.whyNot.find("it takes at least") != 0)
      continue;
    ++left;
    const Bounded made = boundedOf(*causal, request, *ring, each.as);
    INFO(each.form);
    CHECK(*made.time.ms > *best->time.ms);
  }
  CHECK(left > 0);
  CHECK(best->as.headRanks > 1);
}

TEST_CASE("auto compares what best plans take, launches and all, not what a ring would") {
  const auto window = parsed(unionText("%m = attn.window [4096, 0]"));
  RingRequest request = requestOf(643);
  request.sizes = {64, 65536, 65536, 0, 0, {}};
  request.call.heads = 64, request.call.kvHeads = 8, request.call.headDim = request.call.valueDim = 128;
  request.call.rates.linkGBps = 150, request.call.rates.launchUs = 40;
  request.layout = "auto";
  auto ring = planned(*window, request);
  REQUIRE(ring->figures.size() == 4);
  CHECK(ring->name == "balanced"); // a striped ring takes as long by formula
  CHECK(ring->figures[3].ms <= 1.001 * *ring->figures[2].ms);
  CHECK(*ring->figures[2].planMs > 1.5 * *ring->figures[3].planMs);
  CHECK(ring->bestOfPlans()->time.ms == ring->figures[3].planMs);
  CHECK(ring->figures[3].planBytes == 3.0 * 4096 * 8 * 512);
  CHECK(ring->figures[3].isUneven);
  CHECK(ring->why.find("of which none has equal parts, by their plans") != std::string::npos);
  request.isOfEqualParts = true;
  ring = planned(*window, request);
  CHECK(ring->name == "contiguous");
  REQUIRE(ring->refused.size() == 1);
  CHECK(ring->refused[0].name == "balanced");
  CHECK(ring->refused[0].why.find("its parts have ") == 0);
}

TEST_CASE("of more than 64 ranks plans are made of the two layouts that take least by formula") {
  const auto causal = parsed(unionText("%m = attn.causal"));
  RingRequest request = requestOf(1);
  request.ranks = 65, request.layout = "auto";
  request.sizes.seqlenQ = request.sizes.seqlenK = 65 * 32;
  const auto ring = planned(*causal, request);
  std::vector<double> with, without;
  for (const LayoutTimes &each : ring->figures)
    (each.planMs ? with : without).push_back(each.ms.value_or(0));
  REQUIRE(with.size() == 2);
  REQUIRE(!without.empty());
  CHECK(*std::max_element(with.begin(), with.end()) <= *std::min_element(without.begin(), without.end()));
}

TEST_CASE("what calls over ranks refuse has no plan, and layouts are compared by formula") {
  const auto rows = parsed("attn.pattern @p(%a: memref<?xi32>, %b: memref<?xi32>) q_origin(end) { %c = attn.causal "
                           "%m = attn.documents %c at %a, %b : memref<?xi32>, memref<?xi32> attn.softmax union(%m) }");
  RingRequest request = requestOf(1);
  request.layout = "auto";
  const auto ends = std::make_shared<const std::vector<int64_t>>(std::vector<int64_t>{0, request.sizes.seqlenQ});
  request.sizes.parameters = {2, 2}, request.sizes.tensors = {ends, ends};
  const auto ring = planned(*rows, request);
  addGroupTimes(*rows, request, *ring);
  CHECK(ring->groups.empty());
  CHECK(ring->whyNoPlan.find("offsets of documents that count positions") != std::string::npos);
  CHECK(ring->why.find(", by formula") != std::string::npos);
}

TEST_CASE(
    "a bias travels nowhere: plans of its pattern take what those without it take, but no rows and no heads travel") {
  const auto with = parsed("attn.pattern @p(%b: memref<1x?x?x?xf32>) { %m = attn.causal %s = attn.scaled "
                           "%t = attn.bias %s, %b : memref<1x?x?x?xf32> attn.softmax union(%m) of %t }");
  const auto without = parsed(unionText("%m = attn.causal"));
  RingRequest request = requestOf(1);
  request.layout = "zigzag";
  for (const auto *file : {&with, &without}) {
    const auto ring = planned(**file, request);
    addGroupTimes(**file, request, *ring);
    std::vector<std::string> forms;
    for (const GroupForecast &form : ring->groups)
      if (form.time.ms)
        forms.push_back(form.form);
    const bool hasBias = file == &with;
    CHECK(std::count(forms.begin(), forms.end(), "ulysses") == !hasBias);
    CHECK(std::count(forms.begin(), forms.end(), "gather") == 1);
    CHECK(std::count(forms.begin(), forms.end(), "ring") == 1);
    for (const GroupForecast &form : ring->groups)
      if (form.form == "ulysses" && hasBias)
        CHECK(form.time.whyNot.find("has an entry for each query") != std::string::npos);
  }
}

TEST_CASE("rows that travel cost two messages: q with what neighbours ask for, and parts in fp32 that come home") {
  const auto global = parsed(unionText("%w = attn.window [3, 3] %r = attn.rows [1, 0] %m = attn.or %w, %r"));
  const GroupTime gather = planTime(*global, requestOf(1e3), "gather");
  REQUIRE(gather.ms);
  const double query = 8 * 32 * 2, keys = 3 * 4 * 128, part = 8 * (32 + 1) * 4;
  // Ranks 1 and 2 take q of the row and keys of two neighbours; rank 0 takes the parts of three ranks.
  CHECK(*gather.ms == doctest::Approx((query + 2 * keys + 3 * part) / 1e6).epsilon(0.02));
  CHECK(gather.ranks[0].messages == 2);
  CHECK(gather.ranks[0].launches == 2); // one of them of the row, whose own keys are few
  CHECK(gather.ranks[3].messages == 2);
  CHECK(gather.ranks[3].launches == 2);
}

TEST_CASE("few rows are computed beside the parts that come home, and end with their only tiles") {
  const auto global = parsed(unionText("%w = attn.window [256, 256] %r = attn.rows [64, 0] %m = attn.or %w, %r"));
  RingRequest request = requestOf(1);
  request.ranks = 2;
  request.sizes.seqlenQ = request.sizes.seqlenK = 5120;
  const auto timeWith = [&](double launchUs, double tileTflops) {
    RingRequest of = request;
    of.call.rates.launchUs = launchUs, of.call.rates.tileTflops = tileTflops;
    const GroupTime time = planTime(*global, of, "gather");
    REQUIRE(time.ms);
    return time;
  };
  const GroupTime free = timeWith(0, 0), late = timeWith(100, 0);
  CHECK(late.ranks[0].launchMs ==
        doctest::Approx(3 * 0.1)); // behind the first one: rows that need nothing, few rows, a merge
  // One of them while the other rank is waited for; a message begins and is there, parts leave and arrive.
  CHECK(*late.ms - *free.ms == doctest::Approx(2 * 0.1 + 2 * 0.1 / 4));
  CHECK(timeWith(100, 0.025).ranks[0].launchMs == doctest::Approx((1 + 0.25 + 0.25) * 0.1));
}

TEST_CASE("where heads are exchanged three messages are waited for, and four of gradients") {
  const auto full = parsed(unionText("%m = attn.full"));
  const GroupTime forward = planTime(*full, requestOf(1e-3), "ulysses");
  REQUIRE(forward.ms);
  const double heads = 16 * 6, keyHeads = 16 * 3; // of a rank's rows, that leave
  CHECK(*forward.ms == doctest::Approx(4 * kPairs + (heads * (64 + 64 + 4) + keyHeads * 128) / 1e6));
  CHECK(forward.ranks[1].messages == 3);
  RingRequest request = requestOf(1e-3);
  request.call.kind = {KindBase::backward};
  CHECK(*planTime(*full, request, "ulysses").ms ==
        doctest::Approx(2.5 * 4 * kPairs + (heads * (3 * 64 + 4 + 64) + keyHeads * (128 + 256)) / 1e6));
  request.ranks = 3;
  CHECK(planTime(*full, request, "ulysses").whyNot.find("3 ranks do not divide the 8 heads") != std::string::npos);
}

TEST_CASE("by its plan a mix takes its exchange of heads, and the walk of its teams") {
  const auto full = parsed(unionText("%m = attn.full"));
  const double arrive = 16 * (4 * 64 + 2 * 128) / 1e6, leave = 16 * 4 * (64 + 4) / 1e6;
  for (const char *form : {"ulysses2+gather", "ulysses2+ring"}) {
    CAPTURE(std::string(form));
    const GroupTime forward = planTime(*full, requestOf(1e-3), form);
    REQUIRE(forward.ms);
    CHECK(*forward.ms == doctest::Approx(arrive + kKeys + 4 * kPairs + leave));
    REQUIRE(forward.ranks.size() == 4);
    for (const GroupRankTime &rank : forward.ranks) {
      CHECK(rank.messages == 4);
      CHECK(rank.receivedBytes == doctest::Approx(1e6 * (arrive + kKeys + leave)));
      CHECK(rank.fromBeyondBytes == rank.receivedBytes); // no host is given
      CHECK(rank.waitingRows == 16);
      CHECK(rank.firstWaitMs == doctest::Approx(arrive));
      CHECK(rank.ms == doctest::Approx(*forward.ms));
    }
  }
  RingRequest request = requestOf(1e-3);
  request.call.kind = {KindBase::backward};
  CHECK(*planTime(*full, request, "ulysses2+gather").ms ==
        doctest::Approx(16 * (4 * (3 * 64 + 4) + 2 * 128) / 1e6 + 3 * kKeys + 2.5 * 4 * kPairs +
                        16 * (4 * 64 + 2 * 256) / 1e6));
  request = requestOf(1e-3);
  request.call.rates.hostRanks = 2, request.call.rates.hostGBps = 10;
  const GroupTime ofHosts = planTime(*full, request, "ulysses2+gather");
  CHECK(*ofHosts.ms == doctest::Approx((arrive + leave) / 10 + kKeys + 4 * kPairs));
  CHECK(ofHosts.ranks[1].fromBeyondBytes == doctest::Approx(1e6 * kKeys));
  CHECK(*planTime(*full, request, "gather").ms == doctest::Approx(2 * kKeys + 4 * kPairs));
}
