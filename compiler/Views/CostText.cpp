#include "compiler/Views/CostPlan.h"
#include "runtime/Core/CountText.h"

#include <cmath>
#include <cstdio>

namespace heddle::views {
namespace {

using namespace heddle::cost;

template <class... Values> std::string form(const char *format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// 1.01e12 as "1.01 T ", for a word behind it.
std::string shortCount(double value) {
  for (const auto &[unit, name] : {std::pair(1e15, " P "), {1e12, " T "}, {1e9, " G "}, {1e6, " M "}, {1e3, " k "}})
    if (value >= unit)
      return form("%.4g%s", value / unit, name);
  return form("%.4g ", value);
}

std::string padded(const std::string &text, size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 1, ' ');
}

class CostWriter {
public:
  explicit CostWriter(const CostPlan &plan) : plan(plan), problem(plan.problem) {}

  std::string write() {
    text = "cost of " + problem.name + (problem.name == problem.where ? "" : " (" + problem.where + ")") + "\n";
    asked();
    refused();
    if (plan.found.best.empty()) {
      line("best", "none: no layout is possible");
      return text;
    }
    const Candidate &best = plan.found.best.front();
    line("best", best.layout.str());
    stepOf(best);
    memoryOf(best);
    outlookOf(best);
    others();
    return text;
  }

private:
  void line(const std::string &label, const std::string &words) { text += "  " + padded(label, 17) + words + "\n"; }
  void item(const std::string &label, const std::string &words) { text += "    " + padded(label, 15) + words + "\n"; }

  void asked() {
    const ModelSpec &model = problem.model;
    line("model", shortCount(problem.counts.total) + "parameters" +
                      (model.hasExperts() ? ", " + shortCount(problem.counts.active) + "active" : "") + ", " +
                      counted(model.layers, "layer") + ", width " + grouped(model.width) + ", " +
                      counted(model.heads, "head") + " (" + grouped(model.kvHeads) + " for k and v)");
    for (const AttentionSpec &spec : problem.attention)
      line("attention", spec.pattern + sizesOf(spec) + " in " + counted(spec.layers, "layer") + ": " +
                            shortCount(spec.pairs) + "kept pairs of a sequence, " + rateOf(spec));
    const Cluster &cluster = problem.cluster;
    line("cluster", grouped(cluster.gpus) + " " + cluster.gpu.fullName + ", " + grouped(cluster.perHost) +
                        " in a host, links " + form("%.4g", cluster.inside.gbps) + " GB/s inside" +
                        (cluster.between.gbps > 0 ? ", " + form("%.4g", cluster.between.gbps) + " between" : ""));
    line("batch", grouped(problem.sequences()) + " x " + counted(problem.context, "token"));
  }

  static std::string sizesOf(const AttentionSpec &spec) {
    std::string words;
    for (const std::string &size : spec.sizes)
      words += (words.empty() ? " (" : ", ") + size;
    return words.empty() ? "" : words + ")";
  }

  static std::string rateOf(const AttentionSpec &spec) {
    if (spec.kernel == AttentionKernel::materialised)
      return spec.rate.note;
    return form("%.4g and %.4g TFLOP/s back, ", spec.rate.forward, spec.rate.backward) + spec.rate.note;
  }

  void refused() {
    line("searched", grouped(plan.found.tried) + " layouts, " + grouped(plan.found.possible) + " possible");
    for (size_t index = 0; index < kRefusals; ++index) {
      const RefusalCount &refusal = plan.found.refusals[index];
      if (refusal.count == 0)
        continue;
      const bool isMemory = Refusal(index) == Refusal::memory;
      item(grouped(refusal.count), (isMemory ? "too large, at least " : "such as: ") + refusal.why +
                                       (isMemory ? ": " + refusal.example.str() : ""));
    }
  }

  void stepOf(const Candidate &best) {
    line("step", secondsText(best.time.total) + ", " + counted(microBatches(problem, best.layout), "micro-batch") +
                     " of " + secondsText(best.time.forwardMs / 1e3) + " and " +
                     secondsText(best.time.backwardMs / 1e3) + " back");
    for (size_t index = 0; index < kTimeItems; ++index)
      if (best.time.seconds[index] > 0)
        item(nameOf(TimeItem(index)), padded(secondsText(best.time.seconds[index]), 10) +
                                          form("%5.1f%%", 100 * best.time.seconds[index] / best.time.total));
    const TimeArray hidden = hiddenTime(problem, best.layout, best.time);
    for (size_t index = 0; index < kTimeItems; ++index)
      if (hidden[index] > 0)
        item("hidden",
             padded(secondsText(hidden[index]), 10) + nameOf(TimeItem(index)) + " behind " + coverOf(TimeItem(index)));
  }

  void memoryOf(const Candidate &best) {
    line("memory", gibText(best.memory.peakBytes) + form(" of %.4g GiB, largest: ", problem.cluster.gpu.memoryGiB) +
                       nameOf(best.memory.peak));
    for (size_t index = 0; index < kMemoryItems; ++index)
      if (best.memory.atPeak()[index] > 0)
        item(nameOf(MemoryItem(index)), gibText(best.memory.atPeak()[index]));
    for (size_t moment = 0; moment < kMoments; ++moment)
      item(moment ? "" : "in time", padded(gibText(best.memory.totals[moment]), 10) + nameOf(Moment(moment)));
  }

  void outlookOf(const Candidate &best) {
    const Outlook ahead = outlook(problem, best.layout, best.time);
    line("rate", grouped(int64_t(ahead.tokensPerSecond)) + " tokens/s, " +
                     form("%.1f%% of the 16-bit peak (MFU), ", 100 * ahead.mfu) + shortCount(ahead.flopsOfToken) +
                     "FLOPs a token");
    if (ahead.megawatts > 0)
      line("power", form("%.3g MW", ahead.megawatts));
    if (ahead.goodput)
      line("goodput",
           form("%.1f%%: a failure each %.3g h, a checkpoint of %.3g s each %.3g min", 100 * ahead.goodput->share,
                ahead.goodput->failureHours, ahead.goodput->checkpointSeconds, ahead.goodput->intervalSeconds / 60) +
               (ahead.goodput->hasRings ? "; rings go on without a lost rank" : ""));
    if (problem.trainTokens == 0)
      return;
    const std::string tokens = shortCount(problem.trainTokens) + "tokens: ";
    if (!ahead.days) {
      line("training", tokens + "never: failures come faster than checkpoints");
      return;
    }
    line("training", tokens + form("%.4g days, ", *ahead.days) + shortCount(*ahead.gpuHours) + "GPU hours" +
                         (ahead.megawattHours ? form(", %.4g MWh", *ahead.megawattHours) : "") +
                         (ahead.money ? ", " + shortCount(*ahead.money) + "in the currency of the prices" : ""));
  }

  void others() {
    if (plan.found.best.size() < 2)
      return;
    text += "\n    s a step     MFU     peak  layout\n";
    for (const Candidate &candidate : plan.found.best)
      text += form("  %10.4g  %5.1f%%  ", candidate.time.total,
                   100 * outlook(problem, candidate.layout, candidate.time).mfu) +
              form("%7s  ", gibText(candidate.memory.peakBytes).c_str()) + candidate.layout.str() + "\n";
  }

  const CostPlan &plan;
  const CostProblem &problem;
  std::string text;
};

} // namespace

std::string costText(const CostPlan &plan) { return CostWriter(plan).write(); }

std::string publishedText(const std::vector<PublishedRun> &runs) {
  std::string text = padded("run", 46) + "reported  predicted   error  MFU\n";
  double worst = 0;
  for (const PublishedRun &run : runs) {
    const Candidate &best = run.plan.found.best.front();
    const double mfu = outlook(run.plan.problem, best.layout, best.time).mfu;
    text += padded(run.plan.problem.name, 46) + form("%6.4g s  %7.4g s  %+5.1f%%  %.1f%%\n",
                                                     run.plan.reported.secondsOfStep, run.predicted, 100 * run.error(),
                                                     100 * mfu);
    if (!run.plan.reported.note.empty())
      text += "  " + run.plan.reported.note + "\n";
    worst = std::max(worst, std::fabs(run.error()));
  }
  text += form("mean error %.1f%%, largest %.1f%%, of ", 100 * meanError(runs), 100 * worst) +
          counted(runs.size(), "run") + "\n\nconstants of all of them:\n";
  for (const EfficiencySource &row : efficiencySources())
    text += "  " + padded(std::string(row.name), 14) + form("%.2f  ", row.value) + std::string(row.source) + "\n";
  return text;
}

} // namespace heddle::views
