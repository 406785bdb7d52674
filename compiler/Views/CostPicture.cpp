// One scale of blues and one of greys to browns, told apart by lightness and by the words beside them.
#include "compiler/Views/Colours.h"
#include "compiler/Views/CostPlan.h"
#include "compiler/Views/CostTimeline.h"
#include "compiler/Views/SvgText.h"
#include "runtime/Core/CountText.h"

#include <algorithm>
#include <cstdio>

namespace heddle::views {
namespace {

using namespace heddle::cost;

constexpr double kContent = 720, kLine = 16, kBarHeight = 26, kLabel = 210, kTimelineHeight = 14, kTimelineLabel = 60;
constexpr const char *kMemoryFills[kMemoryItems] = {kBlues[4], kBlues[3], kBlues[2], kBlues[1],
                                                    kBlues[0], kGreys[1], kGreys[2]};
constexpr const char *kTimeFills[kTimeItems] = {kBlues[4],  kBlues[3],  kBlues[2], kBlues[1],  kBrowns[6], kBrowns[5],
                                                kBrowns[4], kBrowns[3], kGreys[0], kBrowns[2], kBrowns[1], kBrowns[0]};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

class CostDrawing : SvgPage {
public:
  explicit CostDrawing(const CostPlan &plan) : SvgPage(kContent), plan(plan), best(plan.found.best.front()) {}

  std::string draw() {
    const std::string title = "Cost of " + plan.problem.name;
    double y = paragraph(16, kTitleSize, title, kBold) + 2;
    y = paragraph(y, kTextSize, best.layout.str(), kMuted);
    y = memory(y + 12);
    y = step(y + 16);
    y = pipeline(y + 16);
    return document(title, y + 12);
  }

private:
  void box(Room at, double height, const char *fill, const std::string &title) {
    rect(at, height, "fill=\"" + std::string(fill) + "\" stroke=\"#666666\" stroke-width=\"0.5\"", title);
  }

  double memory(double y) {
    const double most = plan.problem.cluster.gpu.memoryGiB * double(1 << 30);
    const double scale = (kContent - kLabel) / std::max(most, best.memory.peakBytes);
    y = paragraph(y, kTextSize, "memory of a GPU, of " + gibText(most), kBold) + 4;
    for (size_t moment = 0; moment < kMoments; ++moment) {
      label(kMargin, y + kBarHeight / 2 + 4, kTextSize, nameOf(Moment(moment)));
      double x = kMargin + kLabel;
      for (size_t item = 0; item < kMemoryItems; ++item) {
        const double bytes = best.memory.bytes[moment][item];
        if (bytes <= 0)
          continue;
        box({x, y, bytes * scale}, kBarHeight, kMemoryFills[item],
            std::string(nameOf(MemoryItem(item))) + " " + gibText(bytes));
        x += bytes * scale;
      }
      y += kBarHeight + 4;
    }
    const double limit = kMargin + kLabel + most * scale;
    text += "<line x1=\"" + svgNumber(limit) + "\" x2=\"" + svgNumber(limit) + "\" y1=\"" +
            svgNumber(y - double(kMoments) * (kBarHeight + 4)) + "\" y2=\"" + svgNumber(y) + "\" stroke=\"" +
            kBrowns[5] + "\" stroke-width=\"2\"/>\n";
    y += 4;
    for (size_t item = 0; item < kMemoryItems; ++item)
      if (best.memory.atPeak()[item] > 0)
        y = entry(y, kMemoryFills[item], nameOf(MemoryItem(item)), gibText(best.memory.atPeak()[item]));
    return y;
  }

  double step(double y) {
    y = paragraph(y, kTextSize, "a step, " + secondsText(best.time.total), kBold) + 4;
    double x = kMargin;
    const double scale = kContent / best.time.total;
    for (size_t item = 0; item < kTimeItems; ++item) {
      const double seconds = best.time.seconds[item];
      if (seconds <= 0)
        continue;
      box({x, y, seconds * scale}, kBarHeight + 10, kTimeFills[item],
          std::string(nameOf(TimeItem(item))) + " " + secondsText(seconds));
      x += seconds * scale;
    }
    y += kBarHeight + 18;
    for (size_t item = 0; item < kTimeItems; ++item)
      if (best.time.seconds[item] > 0)
        y = entry(y, kTimeFills[item], nameOf(TimeItem(item)),
                  secondsText(best.time.seconds[item]) + ", " +
                      number(100 * best.time.seconds[item] / best.time.total) + "%");
    return y;
  }

  /// Of at most two micro-batches for each stage: what is between them is the same again.
  PipelineWork pipelineWork() const {
    const Layout &layout = best.layout;
    PipelineWork work;
    work.stages = layout.pipeline;
    work.parts = layout.virtualStages;
    work.microBatches = std::min(microBatches(plan.problem, layout), 2 * layout.pipeline);
    if (work.parts > 1)
      work.microBatches -= work.microBatches % layout.pipeline;
    work.forward = best.time.forwardMs / 1e3;
    work.backward = best.time.backwardMs / 1e3;
    work.isForwardFirst = layout.schedule == Schedule::gpipe;
    return work;
  }

  /// Which micro-batch is where at which time, of schedules whose order is one forward, one backward, or forward first.
  double pipeline(double y) {
    constexpr int64_t kMostRows = 8, kMostSlots = 8192;
    const PipelineWork work = pipelineWork();
    const bool isDrawn = best.layout.pipeline > 1 && (best.layout.schedule == Schedule::oneForwardOneBackward ||
                                                      best.layout.schedule == Schedule::gpipe);
    const int64_t rows = std::min(work.stages, kMostRows);
    if (!isDrawn || work.microBatches == 0 || 2 * rows * work.parts * work.microBatches > kMostSlots)
      return y;
    const std::vector<PipelineSlot> slots = pipelineSlots(work);
    double end = 0;
    for (const PipelineSlot &slot : slots)
      end = std::max(end, slot.end);
    y = paragraph(y, kTextSize,
                  "the pipeline, " + counted(work.microBatches, "micro-batch") + " of " +
                      grouped(microBatches(plan.problem, best.layout)) + ", " + secondsText(end) +
                      ": forward light, backward dark",
                  kBold) +
        4;
    for (int64_t row = 0; row < rows; ++row, y += kTimelineHeight + 2) {
      const int64_t stage = rows > 1 ? row * (work.stages - 1) / (rows - 1) : 0;
      label(kMargin, y + kTimelineHeight - 3, kTextSize, "stage " + grouped(stage + 1));
      for (const PipelineSlot &slot : slots)
        if (slot.stage == stage)
          pass(slot, y, (kContent - kTimelineLabel) / end);
    }
    return y;
  }

  void pass(const PipelineSlot &slot, double y, double scale) {
    box({kMargin + kTimelineLabel + slot.begin * scale, y, (slot.end - slot.begin) * scale}, kTimelineHeight,
        slot.isBackward ? kBlues[slot.part % 2 ? 3 : 4] : kBlues[slot.part % 2 ? 1 : 2],
        std::string(slot.isBackward ? "backward" : "forward") + " of micro-batch " + grouped(slot.microBatch + 1) +
            (best.layout.virtualStages > 1 ? ", part " + grouped(slot.part + 1) : ""));
  }

  double entry(double y, const char *fill, const std::string &name, const std::string &words) {
    box({kMargin, y, 12}, 12, fill, name);
    label(kMargin + 18, y + 10, kTextSize, name);
    label(kMargin + 130, y + 10, kTextSize, words);
    return y + kLine;
  }

  const CostPlan &plan;
  const Candidate &best;
};

} // namespace

std::string costSvg(const CostPlan &plan) { return CostDrawing(plan).draw(); }

} // namespace heddle::views
