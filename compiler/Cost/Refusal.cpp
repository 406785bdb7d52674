#include "compiler/Cost/Search.h"

namespace heddle::cost {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

} // namespace

std::optional<Refusal> refusalOf(const CostProblem &problem, const Layout &layout, std::string *why) {
  const ModelSpec &model = problem.model;
  const int64_t ranks = layout.tensor * layout.pipeline * layout.context * layout.data,
                parts = layout.pipeline * layout.virtualStages, sequences = problem.sequences();
  const bool dividesKeys = model.kvHeads % layout.tensor == 0 || layout.tensor % model.kvHeads == 0;
  const bool dividesLayers = model.layers % parts == 0 || (model.layers + 2) % parts == 0 || layout.virtualStages == 1;
  const bool fitsSchedule = layout.schedule == Schedule::oneForwardOneBackward || layout.virtualStages == 1;
  const bool hasPairs = layout.schedule != Schedule::dualPipe || (layout.pipeline % 2 == 0 && layout.pipeline > 1);
  const int64_t kvOfRank = std::max<int64_t>(1, model.kvHeads / layout.tensor);
  using Words = std::string (*)(const CostProblem &, const Layout &);
  const auto ask = [&](bool isWrong, Words words) -> bool {
    if (isWrong && why)
      *why = words(problem, layout);
    return isWrong;
  };
  if (ask(ranks != problem.cluster.gpus, [](const CostProblem &asked, const Layout &of) {
        return "tensor " + number(of.tensor) + " x pipeline " + number(of.pipeline) + " x context " +
               number(of.context) + " x data " + number(of.data) + " are " +
               number(of.tensor * of.pipeline * of.context * of.data) + " ranks, not the " +
               number(asked.cluster.gpus) + " GPUs";
      }))
    return Refusal::gpus;
  if (ask(model.heads % layout.tensor != 0 || !dividesKeys, [](const CostProblem &asked, const Layout &of) {
        return "tensor " + number(of.tensor) + " does not divide " + number(asked.model.heads) + " heads (" +
               number(asked.model.kvHeads) + " for k and v)";
      }))
    return Refusal::heads;
  if (ask(model.ffn % layout.tensor != 0, [](const CostProblem &asked, const Layout &of) {
        return "tensor " + number(of.tensor) + " does not divide an ffn of " + number(asked.model.ffn);
      }))
    return Refusal::ffn;
  if (ask(layout.context > problem.context, [](const CostProblem &asked, const Layout &of) {
        return "context " + number(of.context) + " leaves ranks without one of " + number(asked.context) + " tokens";
      }))
    return Refusal::context;
  if (ask(layout.pipeline > model.layers || parts > model.layers + 2 || !dividesLayers,
          [](const CostProblem &asked, const Layout &of) {
            return "pipeline " + number(of.pipeline) + " x " + number(of.virtualStages) + " does not divide " +
                   number(asked.model.layers) + " layers";
          }))
    return Refusal::layers;
  if (ask(!fitsSchedule || !hasPairs, [](const CostProblem &, const Layout &of) {
        return std::string(nameOf(of.schedule)) +
               (of.virtualStages > 1 ? " has no virtual stages" : " needs an even pipeline");
      }))
    return Refusal::schedule;
  const bool fitsExperts = layout.expert == 1 || (model.hasExperts() && model.experts % layout.expert == 0 &&
                                                  layout.replicas() % layout.expert == 0);
  if (ask(!fitsExperts, [](const CostProblem &asked, const Layout &of) {
        return "expert " + number(of.expert) + " does not divide " + number(asked.model.experts) + " experts and " +
               number(of.replicas()) + " ranks of data and context";
      }))
    return Refusal::experts;
  if (ask(sequences % (layout.data * layout.microBatch) != 0, [](const CostProblem &asked, const Layout &of) {
        return "data " + number(of.data) + " x micro-batch " + number(of.microBatch) + " does not divide " +
               number(asked.sequences()) + " sequences";
      }))
    return Refusal::batch;
  if (ask(layout.context > 1 && layout.scheme == ContextScheme::ulysses && kvOfRank % layout.context != 0,
          [](const CostProblem &asked, const Layout &of) {
            return "context " + number(of.context) + " does not divide the heads of k and v of a rank, " +
                   number(std::max<int64_t>(1, asked.model.kvHeads / of.tensor));
          }))
    return Refusal::ulysses;
  const double hostBytes = offloadedBytes(problem, layout) * double(problem.cluster.perHost);
  const bool offloads = layout.offloadsOptimizer || layout.offloadsActivations;
  if (ask(offloads && problem.cluster.hostLinkGBps == 0, [](const CostProblem &, const Layout &) {
        return std::string("no link to host memory: give host_link_gbps");
      }))
    return Refusal::offload;
  if (ask(hostBytes > problem.cluster.hostMemoryGiB * double(1 << 30), [](const CostProblem &asked, const Layout &of) {
        const double bytes = offloadedBytes(asked, of) * double(asked.cluster.perHost);
        return number(int64_t(bytes / double(1 << 30))) + " GiB of activations are more than host_memory_gib " +
               number(int64_t(asked.cluster.hostMemoryGiB));
      }))
    return Refusal::offload;
  return std::nullopt;
}

} // namespace heddle::cost
