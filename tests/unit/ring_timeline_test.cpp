// What ranks do when, against the sums that are known without it, and how it is drawn.
#include "compiler/Views/RingTimeline.h"
#include "ring_fixture.h"
#include "support/PatternFiles.h"

#include <algorithm>

using namespace heddle;
using namespace heddle::test;
using namespace heddle::views;

namespace {

std::unique_ptr<RingPlan> forecast(const PatternFile &file, const RingRequest &request) {
  std::unique_ptr<RingPlan> ring = planned(file, request);
  addGroupTimes(file, request, *ring);
  return ring;
}

GroupSpans of(const GroupSpans &spans, SpanQueue queue) {
  GroupSpans result;
  std::copy_if(spans.begin(), spans.end(), std::back_inserter(result),
               [&](const GroupSpan &span) { return span.queue == queue; });
  return result;
}

double sumOf(const GroupSpans &spans, SpanKind kind) {
  double sum = 0;
  for (const GroupSpan &span : spans)
    sum += span.kind == kind ? span.end - span.begin : 0;
  return sum;
}

attn::GroupPlanRequest groupOf(const PatternFile &file, const RingRequest &request, const RingPlan &ring) {
  attn::GroupPlanRequest group{file.analysis(), request.sizes, ring.layout};
  group.kvHeads = request.call.kvHeads;
  return group;
}

void checkSums(const GroupRankTime &rank) {
  for (SpanQueue queue : {SpanQueue::Kernels, SpanQueue::Aside, SpanQueue::Links}) {
    double last = 0;
    for (const GroupSpan &span : of(rank.spans, queue)) {
      CHECK(span.begin >= last - 1e-12);
      last = span.end;
    }
    CHECK(last <= rank.ms + 1e-12);
  }
  const GroupSpans kernels = of(rank.spans, SpanQueue::Kernels), links = of(rank.spans, SpanQueue::Links);
  CHECK(sumOf(kernels, SpanKind::Launch) == doctest::Approx(rank.computeMs));
  CHECK(sumOf(kernels, SpanKind::Further) == doctest::Approx(rank.launchMs));
  CHECK(sumOf(kernels, SpanKind::Beside) == doctest::Approx(rank.besideMs));
  CHECK(sumOf(kernels, SpanKind::Memory) >= rank.memoryMs - 1e-12); // what is packed is no memoryMs
  CHECK(std::count_if(links.begin(), links.end(),
                      [](const GroupSpan &span) { return span.kind == SpanKind::Message; }) == rank.messages);
}

} // namespace

TEST_CASE("spans of each queue are in order, and add up to what is known of a rank") {
  const char *const texts[] = {"%m = attn.full", "%m = attn.causal",
                               "%w = attn.window [3, 3] %r = attn.rows [1, 0] %m = attn.or %w, %r"};
  for (const char *text : texts) {
    const auto file = parsed(unionText(text));
    for (KindBase kind : {KindBase::forward, KindBase::backward})
      for (const char *layout : {"contiguous", "zigzag"})
        for (const char *name : {"gather", "ring", "ulysses", "ulysses2+gather", "ulysses2+ring"}) {
          RingRequest request = requestOf(1e-3);
          request.call.kind = {kind};
          request.call.rates.launchUs = 10, request.call.rates.memoryGBps = 100, request.call.rates.latencyUs = 3;
          request.layout = layout;
          const auto ring = forecast(*file, request);
          const GroupTime time =
              timeWithSpans(groupOf(*file, request, *ring), *parseTeamForm(name, request.ranks), request.call);
          INFO(std::string(text) << ", " << request.call.kind.name() << ", " << std::string(layout) << ", "
                                 << std::string(name));
          REQUIRE(time.ms);
          for (const GroupRankTime &rank : time.ranks)
            checkSums(rank);
          for (const GroupForecast &group : ring->groups)
            if (group.form == name) {
              CHECK(*group.time.ms == *time.ms);
              CHECK(group.time.ranks[0].spans.empty());
            }
        }
  }
}

TEST_CASE("a gather of all keys: a message, then a launch") {
  const auto full = parsed(unionText("%m = attn.full"));
  const RingRequest request = requestOf(1e-3);
  const auto ring = forecast(*full, request);
  const GroupTime time = timeWithSpans(groupOf(*full, request, *ring), {attn::GroupForm::Gather}, request.call);
  const double keys = 3 * 16 * 4 * 128 / 1e6, pairs = 4 * 16 * 16 * 8 * 4 * 32 / 1e6;
  REQUIRE(time.ranks[1].spans.size() == 2);
  const GroupSpan &message = time.ranks[1].spans[0], &launch = time.ranks[1].spans[1];
  CHECK(message.queue == SpanQueue::Links);
  CHECK(message.begin == 0);
  CHECK(message.end == doctest::Approx(keys));
  CHECK(launch.queue == SpanQueue::Kernels);
  CHECK(launch.kind == SpanKind::Launch);
  CHECK(launch.begin == doctest::Approx(keys));
  CHECK(launch.end == doctest::Approx(keys + pairs));
}

TEST_CASE("spans are of the best plan alone, once they are asked for, and drawn then") {
  const auto causal = parsed(unionText("%m = attn.causal"));
  const RingRequest request = requestOf(1e-3);
  const auto ring = forecast(*causal, request);
  CHECK(ringSvg(*causal, request, *ring).find("What ranks do when") == std::string::npos);
  addSpans(*causal, request, *ring);
  for (const GroupForecast &group : ring->groups)
    for (const GroupRankTime &rank : group.time.ranks)
      CHECK(rank.spans.empty() == (&group != ring->bestOfPlans()));
  const std::string document = ringSvg(*causal, request, *ring);
  CHECK(document.find("What ranks do when: " + ring->bestOfPlans()->form) != std::string::npos);
  CHECK(document.find(">rank 3</text>") != std::string::npos);
}

TEST_CASE("of many ranks the first, the heaviest and the lightest ones are drawn") {
  const auto causal = parsed(unionText("%m = attn.causal"));
  RingRequest request = requestOf(1);
  request.ranks = 40, request.sizes.seqlenQ = request.sizes.seqlenK = 40 * 16;
  const auto ring = planRing(*causal, request);
  REQUIRE(ring.isOk());
  CHECK(shownRanks(**ring) == std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7, 32, 33, 34, 35, 36, 37, 38, 39});
  request.ranks = 16;
  const auto few = planRing(*causal, request);
  REQUIRE(few.isOk());
  CHECK(shownRanks(**few).size() == 16);
}

TEST_CASE("spans that touch are one bar, and of too many each place has the kind that takes most of it") {
  GroupSpans spans;
  for (int i = 0; i < 100; ++i) {
    spans.push_back({SpanQueue::Kernels, SpanKind::Further, double(i), i + 0.2});
    spans.push_back({SpanQueue::Kernels, i < 50 ? SpanKind::Launch : SpanKind::Memory, i + 0.2, i + 1.0});
  }
  CHECK(coarsened(spans, 1, 200, 200).size() == 200);
  const GroupSpans bars = coarsened(spans, 1, 200, 20); // the second half of the room is empty
  REQUIRE(bars.size() == 2);
  CHECK(bars[0].kind == SpanKind::Launch);
  CHECK(bars[0].begin == 0);
  CHECK(bars[0].end == 50);
  CHECK(bars[1].kind == SpanKind::Memory);
  CHECK(bars[1].end == 100);
  const GroupSpans touching = {{SpanQueue::Links, SpanKind::Message, 0, 1},
                               {SpanQueue::Links, SpanKind::Message, 1.1, 2}};
  CHECK(coarsened(touching, 1, 2, 20).size() == 1);
  CHECK(coarsened(touching, 10, 20, 20).size() == 2);
}
