// Loops are ordered so that what a layer takes, the expensive part, is computed once for all pipelines, ZeRO stages and
// schedules that share it.
#include "compiler/Cost/Search.h"

#include <algorithm>
#include <cstdio>

namespace heddle::cost {
namespace {

constexpr int64_t kMostContextRanks = 1024; ///< that heddle ring plan takes

std::vector<int64_t> divisors(int64_t number, int64_t most) {
  std::vector<int64_t> list;
  for (int64_t divisor = 1; divisor <= std::min(number, most); ++divisor)
    if (number % divisor == 0)
      list.push_back(divisor);
  return list;
}

template <class Value> std::vector<Value> chosen(const std::vector<Value> &given, std::vector<Value> otherwise) {
  return given.empty() ? otherwise : given;
}

std::vector<int64_t> powers(int64_t most) {
  std::vector<int64_t> list;
  for (int64_t power = 1; power <= most; power *= 2)
    list.push_back(power);
  return list;
}

class Searcher {
public:
  Searcher(const CostProblem &problem, size_t most)
      : problem(problem), model(problem.model), choices(problem.choices), most(most),
        memory(problem.cluster.gpu.memoryGiB * double(1 << 30)) {}

  SearchResult run() {
    const int64_t gpus = problem.cluster.gpus;
    for (int64_t tensor : chosen(choices.tensor, divisors(gpus, problem.cluster.perHost)))
      for (int64_t context : contextsOf(problem))
        for (int64_t microBatch : chosen(choices.microBatch, powers(16)))
          for (int64_t expert : chosen(choices.expert, experts()))
            tryLayers({tensor, 1, 1, context, 1, expert, 0, microBatch});
    return std::move(result);
  }

private:
  std::vector<int64_t> experts() const {
    return model.hasExperts() ? divisors(model.experts, problem.cluster.gpus) : std::vector<int64_t>{1};
  }

  std::vector<Recompute> recomputes() const {
    const bool hasScores =
        std::any_of(problem.attention.begin(), problem.attention.end(),
                    [](const AttentionSpec &spec) { return spec.kernel == AttentionKernel::materialised; });
    std::vector<Recompute> list = {Recompute::none, Recompute::sweeps, Recompute::products, Recompute::full};
    if (hasScores)
      list.push_back(Recompute::selective);
    return list;
  }

  std::vector<Schedule> schedules() const {
    std::vector<Schedule> list = {Schedule::oneForwardOneBackward, Schedule::zeroBubble, Schedule::gpipe};
    if (model.hasExperts())
      list.push_back(Schedule::dualPipe);
    return list;
  }

  void tryLayers(Layout layout) {
    const std::vector<ContextScheme> schemes =
        layout.context > 1
            ? chosen(choices.scheme, {ContextScheme::ring, ContextScheme::gather, ContextScheme::ulysses})
            : std::vector{ContextScheme::ring};
    for (ContextScheme scheme : schemes)
      for (Recompute recompute : chosen(choices.recompute, recomputes()))
        for (bool sequence : chosen(choices.splitsSequence, {true}))
          for (bool isDual : {false, true}) { // which hides what experts exchange
            layout.scheme = scheme;
            layout.recompute = recompute;
            layout.splitsSequence = sequence;
            layout.schedule = isDual ? Schedule::dualPipe : Schedule::oneForwardOneBackward;
            tryPipelines(layout, isDual);
          }
  }

  void tryPipelines(Layout layout, bool isDual) {
    std::vector<Schedule> list = chosen(choices.schedule, schedules());
    list.erase(std::remove_if(list.begin(), list.end(),
                              [&](Schedule schedule) { return (schedule == Schedule::dualPipe) != isDual; }),
               list.end());
    if (list.empty())
      return;
    stage.reset();
    const int64_t rest = problem.cluster.gpus / (layout.tensor * layout.context);
    for (int64_t pipeline : chosen(choices.pipeline, divisors(std::max<int64_t>(1, rest), model.layers)))
      for (int64_t parts : chosen(choices.virtualStages, partsOf(pipeline)))
        for (int64_t data : chosen(choices.data, {std::max<int64_t>(1, rest / pipeline)})) {
          layout.pipeline = pipeline;
          layout.virtualStages = parts;
          layout.data = data;
          for (Schedule schedule : pipeline > 1 ? list : std::vector{list.front()}) {
            if (parts > 1 && schedule != Schedule::oneForwardOneBackward && choices.schedule.empty())
              continue;
            layout.schedule = schedule;
            tryZero(layout);
          }
        }
  }

  std::vector<int64_t> partsOf(int64_t pipeline) const {
    std::vector<int64_t> list = {1};
    for (int64_t parts = 2; pipeline > 1 && parts * pipeline <= model.layers + 2; ++parts)
      if (model.layers % (parts * pipeline) == 0 || (model.layers + 2) % (parts * pipeline) == 0)
        list.push_back(parts);
    return list;
  }

  void tryZero(Layout layout) {
    const std::vector<bool> optimizer = chosen(choices.offloadsOptimizer, {false}),
                            activations = chosen(choices.offloadsActivations, offloads(layout));
    for (int64_t zero : chosen(choices.zero, {0, 1, 2, 3}))
      for (bool offloadsOptimizer : optimizer)
        for (bool offloadsActivations : activations) {
          layout.zero = zero;
          layout.offloadsOptimizer = offloadsOptimizer;
          layout.offloadsActivations = offloadsActivations;
          tryOne(layout);
        }
  }

  /// Activations may wait in a host that has room, and where few are kept anyway.
  std::vector<bool> offloads(const Layout &layout) const {
    const bool hasHost = problem.cluster.hostLinkGBps > 0 && problem.cluster.hostMemoryGiB > 0;
    return hasHost && layout.recompute >= Recompute::products ? std::vector<bool>{false, true}
                                                              : std::vector<bool>{false};
  }

  void tryOne(const Layout &layout) {
    ++result.tried;
    if (const std::optional<Refusal> refusal = refusalOf(problem, layout, nullptr)) {
      refuse(*refusal, layout);
      return;
    }
    const MemoryUse use = memoryUse(problem, layout);
    if (use.peakBytes > memory) {
      refuseMemory(layout, use);
      return;
    }
    ++result.possible;
    if (!stage)
      stage = stageTimes(problem, layout);
    keep({layout, stepTime(problem, layout, *stage), use});
  }

  void refuse(Refusal refusal, const Layout &layout) {
    RefusalCount &count = result.refusals[size_t(refusal)];
    if (count.count++ == 0) {
      count.example = layout;
      static_cast<void>(refusalOf(problem, layout, &count.why));
    }
  }

  void refuseMemory(const Layout &layout, const MemoryUse &use) {
    RefusalCount &count = result.refusals[size_t(Refusal::memory)];
    const double excess = use.peakBytes - memory;
    if (count.count++ > 0 && count.excess <= excess)
      return;
    count.example = layout;
    count.excess = excess;
    char text[128];
    std::snprintf(text, sizeof text, "%.1f GiB of %.1f, at the moment '%s'", use.peakBytes / double(1 << 30),
                  memory / double(1 << 30), nameOf(use.peak));
    count.why = text;
  }

  void keep(const Candidate &candidate) {
    std::vector<Candidate> &best = result.best;
    if (best.size() == most && best.back().time.total <= candidate.time.total)
      return;
    const auto place =
        std::upper_bound(best.begin(), best.end(), candidate,
                         [](const Candidate &a, const Candidate &b) { return a.time.total < b.time.total; });
    best.insert(place, candidate);
    if (best.size() > most)
      best.pop_back();
  }

  const CostProblem &problem;
  const ModelSpec &model;
  const LayoutChoices &choices;
  size_t most;
  double memory;
  std::optional<StageTimes> stage; ///< of the layouts that are tried now
  SearchResult result;
};

} // namespace

/// Down to a thousand tokens of a rank: below, ranks wait for links and do little else.
std::vector<int64_t> contextsOf(const CostProblem &problem) {
  return problem.choices.context.empty()
             ? divisors(problem.cluster.gpus, std::clamp<int64_t>(problem.context / 1024, 1, kMostContextRanks))
             : problem.choices.context;
}

SearchResult search(const CostProblem &problem, size_t most) { return Searcher(problem, most).run(); }

} // namespace heddle::cost
