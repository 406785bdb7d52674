//===- CostPicture.cpp - memory as bars, a step as a line -----------------===//
// One scale of blues and one of greys to browns, told apart by lightness and by the words beside them.
//===----------------------------------------------------------------------===//
#include "compiler/Views/CostPlan.h"
#include "compiler/Views/CostTimeline.h"
#include "compiler/Views/SvgText.h"
#include "runtime/Core/CountText.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace heddle::views {
namespace {

using namespace heddle::cost;

constexpr int kMargin = 24, kContent = 720, kTitleSize = 16, kTextSize = 11, kLine = 16, kBarHeight = 26, kLabel = 210,
              kTimelineHeight = 14, kTimelineLabel = 60;
constexpr const char *kMemoryFills[kMemoryItems] = {"#08306b", "#2070b4", "#5ba3d0", "#a9cfe5",
                                                    "#dbe9f6", "#bdbdbd", "#737373"};
constexpr const char *kTimeFills[kTimeItems] = {"#08306b", "#2070b4", "#5ba3d0", "#a9cfe5", "#7f2704", "#a63603",
                                                "#d94801", "#f16913", "#d9d9d9", "#fdae6b", "#fdd0a2", "#feedde"};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

class CostDrawing {
public:
  explicit CostDrawing(const CostPlan &plan) : plan(plan), best(plan.found.best.front()) {}

  std::string draw() {
    const std::string title = "Cost of " + plan.problem.name;
    int y = paragraph(16, kTitleSize, title, " font-weight=\"bold\"") + 2;
    y = paragraph(y, kTextSize, best.layout.str(), " fill=\"#555555\"");
    y = memory(y + 12);
    y = step(y + 16);
    y = pipeline(y + 16);
    const std::string width = std::to_string(kContent + 2 * kMargin), height = std::to_string(y + 12);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + width + " " + height + "\" width=\"" + width +
           "\" height=\"" + height + "\" font-family=\"" + kFontFamily + "\" fill=\"#222222\">\n<title>" +
           escapeXml(title) + "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + text + "</svg>\n";
  }

private:
  void label(double x, int baseline, const std::string &words, const std::string &more = "", int size = kTextSize) {
    text += "<text x=\"" + number(x) + "\" y=\"" + std::to_string(baseline) + "\" font-size=\"" + std::to_string(size) +
            "\"" + more + ">" + escapeXml(words) + "</text>\n";
  }

  int paragraph(int top, int size, const std::string &words, const std::string &more = "") {
    for (const std::string &line : wrapText(words, size, kContent)) {
      label(kMargin, top + size, line, more, size);
      top += size + 4;
    }
    return top;
  }

  void rect(double x, int y, double width, int height, const char *fill, const std::string &title) {
    text += "<rect x=\"" + number(x) + "\" y=\"" + std::to_string(y) + "\" width=\"" + number(width) + "\" height=\"" +
            std::to_string(height) + "\" fill=\"" + fill + "\" stroke=\"#666666\" stroke-width=\"0.5\"><title>" +
            escapeXml(title) + "</title></rect>\n";
  }

  int memory(int y) {
    const double most = plan.problem.cluster.gpu.memoryGiB * double(1 << 30);
    const double scale = (kContent - kLabel) / std::max(most, best.memory.peakBytes);
    y = paragraph(y, kTextSize, "memory of a GPU, of " + gibText(most), " font-weight=\"bold\"") + 4;
    for (size_t moment = 0; moment < kMoments; ++moment) {
      label(kMargin, y + kBarHeight / 2 + 4, nameOf(Moment(moment)));
      double x = kMargin + kLabel;
      for (size_t item = 0; item < kMemoryItems; ++item) {
        const double bytes = best.memory.bytes[moment][item];
        if (bytes <= 0)
          continue;
        rect(x, y, bytes * scale, kBarHeight, kMemoryFills[item],
             std::string(nameOf(MemoryItem(item))) + " " + gibText(bytes));
        x += bytes * scale;
      }
      y += kBarHeight + 4;
    }
    const double limit = kMargin + kLabel + most * scale;
    text += "<line x1=\"" + number(limit) + "\" x2=\"" + number(limit) + "\" y1=\"" +
            std::to_string(y - int(kMoments) * (kBarHeight + 4)) + "\" y2=\"" + std::to_string(y) +
            "\" stroke=\"#a63603\" stroke-width=\"2\"/>\n";
    y += 4;
    for (size_t item = 0; item < kMemoryItems; ++item)
      if (best.memory.atPeak()[item] > 0)
        y = entry(y, kMemoryFills[item], nameOf(MemoryItem(item)), gibText(best.memory.atPeak()[item]));
    return y;
  }

  int step(int y) {
    y = paragraph(y, kTextSize, "a step, " + secondsText(best.time.total), " font-weight=\"bold\"") + 4;
    double x = kMargin;
    const double scale = kContent / best.time.total;
    for (size_t item = 0; item < kTimeItems; ++item) {
      const double seconds = best.time.seconds[item];
      if (seconds <= 0)
        continue;
      rect(x, y, seconds * scale, kBarHeight + 10, kTimeFills[item],
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
  int pipeline(int y) {
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
                  " font-weight=\"bold\"") +
        4;
    for (int64_t row = 0; row < rows; ++row, y += kTimelineHeight + 2) {
      const int64_t stage = rows > 1 ? row * (work.stages - 1) / (rows - 1) : 0;
      label(kMargin, y + kTimelineHeight - 3, "stage " + grouped(stage + 1));
      for (const PipelineSlot &slot : slots)
        if (slot.stage == stage)
          pass(slot, y, (kContent - kTimelineLabel) / end);
    }
    return y;
  }

  void pass(const PipelineSlot &slot, int y, double scale) {
    rect(kMargin + kTimelineLabel + slot.begin * scale, y, (slot.end - slot.begin) * scale, kTimelineHeight,
         slot.isBackward ? (slot.part % 2 ? "#0b4a8a" : "#08306b") : (slot.part % 2 ? "#a9cfe5" : "#5ba3d0"),
         std::string(slot.isBackward ? "backward" : "forward") + " of micro-batch " + grouped(slot.microBatch + 1) +
             (best.layout.virtualStages > 1 ? ", part " + grouped(slot.part + 1) : ""));
  }

  int entry(int y, const char *fill, const std::string &name, const std::string &words) {
    rect(kMargin, y, 12, 12, fill, name);
    label(kMargin + 18, y + 10, name);
    label(kMargin + 130, y + 10, words);
    return y + kLine;
  }

  const CostPlan &plan;
  const Candidate &best;
  std::string text;
};

} // namespace

std::string costSvg(const CostPlan &plan) { return CostDrawing(plan).draw(); }

} // namespace heddle::views
