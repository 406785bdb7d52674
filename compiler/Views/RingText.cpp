#include "compiler/Views/ExplanationPrint.h"
#include "compiler/Views/Picture.h"
#include "compiler/Views/RingPlan.h"
#include "compiler/Views/RingWords.h"
#include "runtime/Core/CountText.h"

#include <algorithm>

namespace heddle::views {
namespace {

using attn::ShardStep;
using attn::WideInt;

constexpr size_t kShownRanks = 3; ///< of the heaviest, and of the lightest

std::string named(const std::string &name) { return name + std::string(name.size() < 17 ? 17 - name.size() : 1, ' '); }

std::string bytesOf(WideInt bytes) { return bytesText(static_cast<double>(bytes)); }

class RingWriter {
public:
  RingWriter(const PatternFile &file, const RingRequest &request, const RingPlan &ring)
      : file(file), request(request), ring(ring) {}

  std::string write(bool withAll) {
    header();
    travel();
    predicted();
    ofPlans();
    const std::vector<size_t> order = heaviestFirst(ring);
    const bool isShort = !withAll && order.size() > 2 * kShownRanks + 2;
    if (const GroupForecast *best = ring.bestOfPlans()) {
      text += "\n  by the best plan, " + best->form +
              "\n  rank      kept pairs     receives    computes       waits    launches    messages        ends\n";
      forShown(order, isShort, [&](size_t rank) { planLine(rank, best->time.ranks[rank]); });
      if (!withAll)
        return text;
    }
    text += "\n  by formula, a ring without launches"
            "\n  rank      kept pairs     receives        sends    computes       waits        ring\n";
    forShown(order, isShort, [&](size_t rank) {
      rankLine(rank);
      if (withAll)
        steps(rank);
    });
    return text;
  }

private:
  void line(const char *label, const std::string &value) { text += labelled(label, value); }

  void header() {
    const RingCall &call = request.call;
    text += "ring plan of " + titleOf(file, request.sizes) + " (" + file.path() + ")\n";
    line("problem", (call.batch > 1 ? "batch " + grouped(call.batch) + ", " : "") + ringWords(request, ring) + ", " +
                        counted(call.heads, "head") + " (" + grouped(call.kvHeads) + " for k and v), head_dim " +
                        std::to_string(call.headDim) +
                        (call.valueDim == call.headDim ? "" : ", value_dim " + std::to_string(call.valueDim)) + ", " +
                        dtypeName(call.dtype) + ", " + call.kind.name());
    line("layout", ring.name + (ring.figures.size() + ring.refused.size() > 1 ? ": " + ring.why : ""));
    for (const LayoutTimes &figures : ring.figures)
      if (ring.figures.size() + ring.refused.size() > 1)
        line("", layoutName(figures.name) + layoutWords(figures));
    for (const RefusedLayout &refused : ring.refused)
      line("", layoutName(refused.name) + "- (" + refused.why + ")");
  }

  static std::string layoutName(const std::string &name) { return name + std::string(11 - name.size(), ' '); }

  std::string layoutWords(const LayoutTimes &figures) const {
    return "balance " + (figures.balance ? real("%.3f", *figures.balance) : "unknown") + ", " +
           bytesOf(figures.travelling * request.call.bytesOfKey()) + " of k and v travel" +
           (figures.ms ? ", " + figures.scheme + " " + milliseconds(*figures.ms) : "") +
           (figures.planMs ? "; by its plan " + figures.form + " " + milliseconds(*figures.planMs) + ", " +
                                 bytesText(figures.planBytes) + " in all"
                           : "") +
           (figures.isUneven
                ? "; parts of " + grouped(figures.rows.begin) + " to " + grouped(figures.rows.end) + " rows"
                : "");
  }

  void travel() {
    const attn::ShardPlan &plan = *ring.plan;
    WideInt pairs = 0, most = 0, sum = 0;
    size_t steps = 0, empty = 0, inexact = 0;
    for (size_t rank = 0; rank < plan.ranks(); ++rank) {
      pairs += plan.pairsOf(rank).value_or(0);
      most = std::max(most, ring.times.ranks[rank].receives);
      sum += ring.times.ranks[rank].receives;
      for (size_t peer = 0; peer < plan.ranks(); ++peer) {
        steps += rank != peer;
        empty += rank != peer && plan.step(rank, peer).columns == 0;
        inexact += rank != peer && !plan.step(rank, peer).isExact;
      }
    }
    if (const std::optional<double> balance = plan.balance())
      line("kept pairs", grouped(pairs) + ", the heaviest rank has " + real("%.3f", *balance) + " of the mean");
    else
      line("kept pairs", "unknown: no closed form, or one that takes more evaluations than --limit");
    line("a ring moves",
         bytesOf(sum) + " in all, " + bytesOf(most) + " to the rank that receives most" +
             (inexact ? "; at most, as " + counted(inexact, "exchange") + " may hold keys that no row keeps" : ""));
    line("exchanges", grouped(empty) + " of " + grouped(steps) + " never happen: no row keeps a key there");
  }

  void predicted() {
    line("rates", "kernels " + real("%.4g", request.call.rates.tflops) + " TFLOP/s (" + request.rateNote + "), links " +
                      linkWords(request));
    for (const RingScheme &scheme : ring.times.schemes)
      line("predicted", schemeWords(scheme));
    if (ring.times.best)
      line("best", std::string(ring.times.schemes[*ring.times.best].name) + gainWords());
  }

  /// What heddle.distributed does, by its plan.
  void ofPlans() {
    if (!ring.whyNoPlan.empty())
      line("by its plan", "- (" + ring.whyNoPlan + ")");
    for (const GroupForecast &group : ring.groups) {
      const std::string name = named(group.form);
      if (!group.time.ms) {
        line("by its plan", name + "- (" + group.time.whyNot + ")");
        continue;
      }
      const bool isMix = group.as.headRanks > 1 && group.as.headRanks < request.ranks;
      if (isMix && &group != ring.bestOfPlans()) { // there may be many
        line("by its plan", name + milliseconds(*group.time.ms) + ", " + receivedWords(group.time));
        continue;
      }
      const size_t last = group.time.slowest();
      const GroupRankTime &rank = group.time.ranks[last];
      line("by its plan", name + milliseconds(*group.time.ms) + ", that of rank " + std::to_string(last) + ": " +
                              milliseconds(rank.computeMs) + " in " + counted(rank.launches, "launch") + " (" +
                              milliseconds(rank.launchMs) + " more), " + milliseconds(rank.memoryMs) +
                              " of carries and copies");
      line("", "launches end " + milliseconds(rank.besideMs) + " later beside " + counted(rank.messages, "message") +
                   "; waits " + milliseconds(rank.firstWaitMs) + " for the first keys, " + milliseconds(rank.waitMs) +
                   " in all; " + counted(rank.waitingRows, "row") + " in blocks that begin with them; " +
                   receivedWords(group.time));
    }
    if (const GroupForecast *best = ring.bestOfPlans())
      line("best plan", best->form + ": " + travelWords(best->time));
  }

  static std::string travelWords(const GroupTime &time) {
    double most = 0;
    for (const GroupRankTime &rank : time.ranks)
      most = std::max(most, rank.receivedBytes);
    return bytesText(time.bytes()) + " travel in all, " + bytesText(most) + " to the rank that receives most";
  }

  std::string receivedWords(const GroupTime &time) const {
    double most = 0, mostFromBeyond = 0;
    for (const GroupRankTime &rank : time.ranks) {
      most = std::max(most, rank.receivedBytes);
      mostFromBeyond = std::max(mostFromBeyond, rank.fromBeyondBytes);
    }
    return "a rank receives at most " + bytesText(most) +
           (request.call.rates.hostRanks ? ", " + bytesText(mostFromBeyond) + " from beyond its host" : "");
  }

  std::string gainWords() const {
    if (!ring.times.gain)
      return "";
    return *ring.times.gain >= 1 ? ", the next one takes " + real("%.3g", *ring.times.gain + 1) + " times as long"
                                 : ", the next one takes " + real("%.1f", *ring.times.gain * 100) + "% longer";
  }

  std::string schemeWords(const RingScheme &scheme) const {
    const std::string name = named(scheme.name);
    if (!scheme.ms)
      return name + "- (" + scheme.whyNot + ")";
    if (scheme.name != "ring")
      return name + milliseconds(*scheme.ms);
    int64_t slots = 0, waiting = 0;
    for (const RankTime &rank : ring.times.ranks) {
      slots += rank.slots;
      waiting += rank.waiting;
    }
    return name + milliseconds(*scheme.ms) + ", " + grouped(waiting) + " of " + counted(slots, "step") +
           " of all ranks wait for a link";
  }

  /// All ranks, or the heaviest and the lightest ones.
  template <class Use> void forShown(const std::vector<size_t> &order, bool isShort, const Use &use) {
    for (size_t place = 0; place < order.size(); ++place) {
      if (!isShort || place < kShownRanks || place + kShownRanks >= order.size())
        use(isShort ? order[place] : place);
      else if (place == kShownRanks)
        text += "  ... " + counted(order.size() - 2 * kShownRanks, "rank") +
                " between the heaviest and the lightest ones: --all-ranks or --json\n";
    }
  }

  std::string rankWords(size_t rank) const {
    const std::optional<WideInt> pairs = ring.plan->pairsOf(rank);
    return cell(std::to_string(rank), 6) + cell(pairs ? grouped(*pairs) : "unknown", 16);
  }

  void planLine(size_t rank, const GroupRankTime &time) {
    text += rankWords(rank) + cell(bytesText(time.receivedBytes), 13) + cell(milliseconds(time.computeMs), 12) +
            cell(milliseconds(time.waitMs), 12) + cell(grouped(time.launches), 12) + cell(grouped(time.messages), 12) +
            cell(milliseconds(time.ms), 12) + "\n";
  }

  void rankLine(size_t rank) {
    const RankTime &time = ring.times.ranks[rank];
    const std::optional<WideInt> pairs = ring.plan->pairsOf(rank);
    text += rankWords(rank) + cell(bytesOf(time.receives), 13) + cell(bytesOf(time.sends), 13) +
            cell(pairs ? milliseconds(time.computeMs) : "-", 12) + cell(pairs ? milliseconds(time.waitMs()) : "-", 12) +
            cell(pairs ? milliseconds(time.ms) : "-", 12) + "\n";
  }

  void steps(size_t rank) {
    const std::vector<RingSlot> slots = ringSlots(*ring.plan, request.call, rank);
    for (size_t index = 0; index < ring.plan->ranks(); ++index) {
      const size_t peer = (rank + ring.plan->ranks() - index) % ring.plan->ranks();
      const ShardStep &step = ring.plan->step(rank, peer);
      if (step.columns == 0)
        continue;
      text += "        step " + std::to_string(index) + ", keys of rank " + std::to_string(peer) + ": " +
              grouped(step.columns) + (step.columns == ring.layout.rowsOf(peer) ? " (all)" : "") +
              (step.isExact ? "" : " at most") +
              (rank == peer ? "" : ", " + bytesOf(step.headColumns * request.call.bytesOfKey())) + ", " +
              (step.pairs ? counted(*step.pairs, "pair") : "pairs unknown") + (step.isWhole ? ", no mask" : "");
      if (!slots.empty())
        text +=
            ", " + milliseconds(slots[index].ms()) + (slots[index].isWaiting() ? " of communication" : " of computing");
      text += "\n";
    }
  }

  const PatternFile &file;
  const RingRequest &request;
  const RingPlan &ring;
  std::string text;
};

} // namespace

std::string ringWords(const RingRequest &request, const RingPlan &ring) {
  return counted(request.sizes.seqlenQ, "token") + " on " + counted(request.ranks, "rank") + ", " + ring.name;
}

std::string ringText(const PatternFile &file, const RingRequest &request, const RingPlan &ring, bool withAll) {
  return RingWriter(file, request, ring).write(withAll);
}

} // namespace heddle::views
