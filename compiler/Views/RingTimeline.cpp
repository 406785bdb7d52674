#include "compiler/Views/RingTimeline.h"
#include "compiler/Views/Colours.h"
#include "runtime/Core/CountText.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace heddle::views {
namespace {

constexpr size_t kMostRows = 16, kHeaviest = 8, kMostBars = 240, kMostTitles = 16;
constexpr double kLabel = 64, kBar = 12, kThinBar = 4, kBetween = 5, kTouch = 0.3, kSeen = 0.1, kSwatch = 12,
                 kLine = 17;

struct Look {
  SpanKind kind;
  const char *fill, *words;
};
constexpr Look kLooks[] = {{SpanKind::Launch, kBlues[3], "a launch computes"},
                           {SpanKind::Further, kBlues[1], "the fixed time of a further launch"},
                           {SpanKind::Beside, kBrowns[2], "launches end later beside a message"},
                           {SpanKind::Memory, kBrowns[5], "carries, copies, what is packed"},
                           {SpanKind::Message, kGreys[2], "a message"}};

const Look &lookOf(SpanKind kind) {
  return *std::find_if(std::begin(kLooks), std::end(kLooks), [&](const Look &look) { return look.kind == kind; });
}

std::string millisecondsText(double ms) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g ms", ms);
  return text;
}

/// 1, 2 or 5 times a power of ten, so that there are at most six.
double stepOfAxis(double ms) {
  const double power = std::pow(10, std::floor(std::log10(ms / 6)));
  for (double step : {power, 2 * power, 5 * power})
    if (ms / step <= 6)
      return step;
  return 10 * power;
}

class Timeline {
public:
  Timeline(SvgPage &page, double content, const RingPlan &ring, const GroupForecast &plan)
      : page(page), ring(ring), plan(plan), room(content - kLabel), ms(*plan.time.ms), scale(room / ms) {
    for (const GroupRankTime &rank : plan.time.ranks)
      hasAside |= std::any_of(rank.spans.begin(), rank.spans.end(),
                              [](const GroupSpan &span) { return span.queue == SpanQueue::Aside; });
  }

  double draw(double y) {
    const std::vector<size_t> ranks = shownRanks(ring);
    y = page.paragraph(y, SvgPage::kTextSize, "What ranks do when: " + plan.form + ", " + millisecondsText(ms),
                       SvgPage::kBold);
    y = page.paragraph(y, SvgPage::kTextSize,
                       "Kernels" + std::string(hasAside ? ", a thin row of launches beside them" : "") +
                           ", and a thin row of links; where there is nothing the rank waits or is done" +
                           (ranks.size() < plan.time.ranks.size()
                                ? ". " + std::to_string(ranks.size()) + " of " + grouped(plan.time.ranks.size()) +
                                      " ranks: the first, the heaviest and the lightest ones"
                                : ""),
                       SvgPage::kMuted);
    y = axis(y + 4, double(ranks.size()) * heightOfRow());
    for (size_t rank : ranks)
      y = row(y, rank);
    return legend(y + 6);
  }

private:
  double heightOfRow() const { return kBar + kThinBar + (hasAside ? kThinBar : 0) + kBetween; }

  double axis(double y, double height) {
    const double step = stepOfAxis(ms);
    for (int tick = 0; tick * step <= ms; ++tick) {
      const double x = SvgPage::kMargin + kLabel + tick * step * scale;
      const std::string words = millisecondsText(tick * step);
      const double right = SvgPage::kMargin + kLabel + room - textWidth(words, SvgPage::kTextSize);
      page.label(std::min(x, right), y + SvgPage::kTextSize, SvgPage::kTextSize, words, SvgPage::kMuted);
      page.rect({x, y + 15, 0.5}, height + 3, filled(kGreys[1]), "");
    }
    return y + 18;
  }

  double row(double y, size_t rank) {
    page.label(SvgPage::kMargin, y + kBar - 2, SvgPage::kTextSize, "rank " + std::to_string(rank));
    bars(rank, SpanQueue::Kernels, y, kBar);
    y += kBar;
    if (hasAside) {
      bars(rank, SpanQueue::Aside, y, kThinBar);
      y += kThinBar;
    }
    bars(rank, SpanQueue::Links, y, kThinBar);
    return y + kThinBar + kBetween;
  }

  void bars(size_t rank, SpanQueue queue, double y, double height) {
    GroupSpans spans;
    for (const GroupSpan &span : plan.time.ranks[rank].spans)
      if (span.queue == queue)
        spans.push_back(span);
    const bool hasTitles = spans.size() <= kMostTitles;
    for (const GroupSpan &span : coarsened(spans, scale, room, kMostBars)) {
      if ((span.end - span.begin) * scale < kSeen)
        continue;
      const Look &look = lookOf(span.kind);
      page.rect({SvgPage::kMargin + kLabel + span.begin * scale, y, (span.end - span.begin) * scale}, height,
                filled(look.fill),
                hasTitles ? std::string(look.words) + ", " + millisecondsText(span.end - span.begin) : "");
    }
  }

  double legend(double y) {
    for (const Look &look : kLooks) {
      page.rect({SvgPage::kMargin, y, kSwatch}, kSwatch, filled(look.fill), "");
      page.label(SvgPage::kMargin + kSwatch + 6, y + kSwatch - 2, SvgPage::kTextSize, look.words);
      y += kLine;
    }
    return y;
  }

  SvgPage &page;
  const RingPlan &ring;
  const GroupForecast &plan;
  const double room, ms, scale;
  bool hasAside = false;
};

/// Of each place the kind that takes most of it, or nothing.
GroupSpans byPlace(const GroupSpans &spans, double scale, double room, size_t places) {
  constexpr size_t kKinds = std::size(kSpanKinds);
  const double width = room / double(places);
  std::vector<double> taken(places * kKinds, 0.0);
  for (const GroupSpan &span : spans)
    for (size_t place = size_t(span.begin * scale / width); place < places; ++place) {
      const double begin = std::max(span.begin * scale, double(place) * width),
                   end = std::min(span.end * scale, double(place + 1) * width);
      if (end <= begin)
        break;
      taken[place * kKinds + size_t(span.kind)] += end - begin;
    }
  GroupSpans result;
  for (size_t place = 0; place < places; ++place) {
    const auto of = taken.begin() + ptrdiff_t(place * kKinds), most = std::max_element(of, of + kKinds);
    double all = 0;
    for (size_t kind = 0; kind < kKinds; ++kind)
      all += of[ptrdiff_t(kind)];
    if (all > width / 2)
      result.push_back(
          {spans.front().queue, SpanKind(most - of), double(place) * width / scale, double(place + 1) * width / scale});
  }
  return result;
}

GroupSpans joined(const GroupSpans &spans, double scale) {
  GroupSpans result;
  for (const GroupSpan &span : spans)
    if (!result.empty() && result.back().kind == span.kind && (span.begin - result.back().end) * scale < kTouch)
      result.back().end = span.end;
    else
      result.push_back(span);
  return result;
}

} // namespace

std::vector<size_t> shownRanks(const RingPlan &ring) {
  std::vector<size_t> shown = heaviestFirst(ring);
  if (shown.size() > kMostRows) {
    shown.erase(std::remove(shown.begin(), shown.end(), size_t(0)), shown.end());
    shown.erase(shown.begin() + kHeaviest, shown.end() - (kMostRows - 1 - kHeaviest));
    shown.push_back(0);
  }
  std::sort(shown.begin(), shown.end());
  return shown;
}

GroupSpans coarsened(const GroupSpans &spans, double scale, double room, size_t most) {
  const GroupSpans exact = joined(spans, scale);
  return exact.size() <= most ? exact : joined(byPlace(spans, scale, room, most), scale);
}

double drawTimeline(SvgPage &page, double top, double content, const RingPlan &ring) {
  const GroupForecast *plan = ring.bestOfPlans();
  const bool hasSpans = plan && *plan->time.ms > 0 &&
                        std::any_of(plan->time.ranks.begin(), plan->time.ranks.end(),
                                    [](const GroupRankTime &rank) { return !rank.spans.empty(); });
  return hasSpans ? Timeline(page, content, ring, *plan).draw(top) : top;
}

} // namespace heddle::views
