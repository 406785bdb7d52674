#include "compiler/Cost/StepTime.h"

#include <algorithm>
#include <cmath>

namespace heddle::cost {
namespace {

constexpr double kElement = 2; ///< bytes of activations

double &of(TimeArray &times, TimeItem item) { return times[int(item)]; }

/// Times of products and sweeps on one GPU.
class Device {
public:
  explicit Device(const CostProblem &problem)
      : gpu(problem.cluster.gpu), isFp8(problem.precision.isFp8), left(1 - problem.overlap.units / gpu.units) {}

  /// Tiles of 128 x 128 are dealt out to all units: a last round that is not full costs as a full one. Never faster
  /// than its operands can be read and its result be written.
  double product(double rows, double inner, double columns) const {
    const double tiles = std::ceil(rows / kTile) * std::ceil(columns / kTile), rounds = std::ceil(tiles / gpu.units),
                 flops = 2 * inner * kTile * kTile * (tiles > gpu.units ? rounds * gpu.units : tiles);
    const double used = tiles > gpu.units ? 1 : std::min(1.0, 2 * tiles / gpu.units); // few tiles: cut along `inner`
    const double bytes = (rows * inner + inner * columns) * (isFp8 ? 1 : 2) + rows * columns * 2;
    return std::max(flops / (rate() * std::max(used, 0.05)), sweep(bytes));
  }

  double sweep(double bytes) const { return bytes / (gpu.bandwidthGBps * 1e9 * efficiency().memory); }

  /// The time of scores that are written down: never in 8 bits.
  double scoreFlops(double flops) const { return flops / (gpu.tflops * 1e12 * efficiency().products * left); }

  double attention(double flops, double tflops) const { return flops / (tflops * 1e12 * left); }

private:
  static constexpr double kTile = 128;
  double rate() const {
    return left * 1e12 * (isFp8 ? gpu.fp8Tflops * efficiency().fp8Products : gpu.tflops * efficiency().products);
  }
  const Accelerator &gpu;
  bool isFp8;
  double left; ///< share of the units that compute
};

/// Adds up what one micro-batch takes in one layer.
class LayerClock {
public:
  LayerClock(const CostProblem &problem, const Layout &layout)
      : problem(problem), model(problem.model), layout(layout), device(problem), links(problem.cluster),
        rows(double(layout.microBatch) * double(problem.context) / double(layout.context)),
        tensor(double(layout.tensor)) {}

  LayerTime layer() {
    addAttention();
    addFfn();
    addOuterSweeps();
    addRecompute();
    return time;
  }

  LayerTime head() {
    addProduct({double(model.width), double(model.vocabulary), Product::Split::columns}, rows, 1);
    const double bytes = rows * double(model.vocabulary) / tensor * 10; // logits in 16 bits, read and written in 32
    addSweeps(bytes);
    return time;
  }

private:
  void addProduct(const Product &product, double tokens, double times) {
    const double inner = product.split == Product::Split::inner ? product.inner / tensor : product.inner,
                 columns = product.split == Product::Split::columns ? product.columns / tensor : product.columns;
    const double forward = device.product(tokens, inner, columns) * times,
                 weights = device.product(inner, tokens, columns) * times;
    of(time.forward, TimeItem::products) += forward;
    of(time.backward, TimeItem::products) += device.product(tokens, columns, inner) * times + weights;
    time.weightGradient += weights;
    if (problem.precision.isFp8) // read in 16 bits, written in 8 once as it is and once transposed
      addSweeps(tokens * inner * 4 * times);
  }

  void addSweeps(double bytes) {
    of(time.forward, TimeItem::sweeps) += device.sweep(bytes);
    of(time.backward, TimeItem::sweeps) += device.sweep(2 * bytes);
  }

  void addAttention() {
    for (const Product &product : attentionProducts(model))
      addProduct(product, rows, 1);
    double keys = 0;
    for (const AttentionSpec &spec : problem.attention) {
      const double share = double(spec.layers) / double(model.layers);
      const ContextShare context = layout.context > 1 ? spec.share(layout.context) : ContextShare();
      addScores(spec, share, layout.scheme == ContextScheme::ulysses ? 1 : context.balance);
      keys += share * context.keysReceived;
    }
    const double projected = (double(model.heads) * double(model.headDim + model.valueDim) +
                              double(model.kvHeads) * double(model.headDim + model.valueDim)) /
                             tensor;
    addSweeps(rows * projected * kElement * 2); // positions are turned into q and k, and layouts changed
    addTensorCollectives();
    if (layout.context > 1)
      addContext(keys);
  }

  void addScores(const AttentionSpec &spec, double share, double balance) {
    const double sequences = double(layout.microBatch), dims = double(model.headDim + model.valueDim),
                 ranks = tensor * double(layout.context);
    double &forward = of(time.forward, TimeItem::attention), &backward = of(time.backward, TimeItem::attention);
    if (spec.kernel != AttentionKernel::materialised) {
      const double flops = 2 * dims * spec.pairs * sequences * balance / ranks;
      forward += share * device.attention(flops, spec.rate.forward);
      backward += share * device.attention(2.5 * flops, spec.rate.backward);
      return;
    }
    const double scores = double(model.heads) * double(problem.context) * double(problem.context) * sequences / ranks;
    forward += share * (device.scoreFlops(2 * dims * scores) + device.sweep(kScoreBytes * scores));
    backward += share * (device.scoreFlops(4 * dims * scores) + device.sweep(kScoreGradientBytes * scores));
    if (layout.recompute == Recompute::selective)
      of(time.backward, TimeItem::recompute) +=
          share * (device.scoreFlops(2 * dims * scores) + device.sweep(kScoreBytes * scores));
  }

  void addTensorCollectives() {
    if (layout.tensor == 1)
      return;
    const Group group = {layout.tensor, 1};
    const double bytes = rows * double(model.width) * kElement;
    const double pairs = model.hasParallelBlocks ? 1 : 2; // behind attention, behind the ffn
    double seconds = pairs * links.reduce(group, bytes);
    if (problem.overlap.tensor) {
      const double behind = of(time.forward, TimeItem::products);
      seconds = seconds / tensor + std::max(0.0, seconds * (1 - 1 / tensor) - behind);
    }
    of(time.forward, TimeItem::tensor) += seconds;
    of(time.backward, TimeItem::tensor) += seconds;
  }

  void addContext(double keys) {
    const Group group = {layout.context, layout.tensor};
    const double keyBytes = double(layout.microBatch) * double(model.kvHeads) * double(model.headDim + model.valueDim) /
                            std::min(tensor, double(model.kvHeads));
    double forward = 0, backward = 0;
    if (layout.scheme == ContextScheme::ring) {
      forward = ringSeconds(group, keys * keyBytes * kElement, of(time.forward, TimeItem::attention));
      backward = ringSeconds(group, keys * keyBytes * (kElement + 4), of(time.backward, TimeItem::attention));
    } else if (layout.scheme == ContextScheme::gather) {
      const double bytes = double(problem.context) * keyBytes;
      forward = links.gather(group, bytes * kElement);
      backward = links.gather(group, bytes * kElement) + links.scatter(group, bytes * 4);
    } else {
      const double bytes =
          rows * kElement / tensor * (double(model.heads + model.kvHeads) * double(model.headDim + model.valueDim));
      forward = links.exchange(group, bytes);
      backward = 2 * links.exchange(group, bytes);
    }
    of(time.forward, TimeItem::context) += forward;
    of(time.backward, TimeItem::context) += backward;
  }

  /// All steps but the first wait for what arrives during the one before.
  double ringSeconds(const Group &group, double bytes, double attention) const {
    const Group neighbours = {group.size, group.stride};
    const double moved = links.send(neighbours, bytes) + double(layout.context - 2) * latency(group);
    return problem.overlap.context ? std::max(0.0, moved - attention * (1 - 1 / double(layout.context))) : moved;
  }

  double latency(const Group &group) const {
    return (links.hostsOf(group) > 1 ? problem.cluster.between.us : problem.cluster.inside.us) * 1e-6;
  }

  void addFfn() {
    const double expertShare = double(model.expertLayers()) / double(model.layers);
    if (expertShare < 1)
      addFfnOf(model.ffn, rows, 1, 1 - expertShare);
    if (expertShare == 0)
      return;
    if (model.sharedExperts > 0)
      addFfnOf(model.expertFfn * model.sharedExperts, rows, 1, expertShare);
    const double held = double(model.experts) / double(layout.expert),
                 routed = rows * double(model.activeExperts) / held;
    addFfnOf(model.expertFfn, routed, held, expertShare);
    addSweeps(expertShare * rows * double(model.activeExperts) * double(model.width) * kElement * 4); // sorted and back
    addExchange(expertShare);
  }

  /// `copies` ffns of `tokens` rows each.
  void addFfnOf(int64_t channels, double tokens, double copies, double share) {
    for (const Product &product : ffnProducts(model, channels))
      addProduct(product, tokens, copies * share);
    addSweeps(share * copies * tokens * double(channels) / tensor * kElement * (model.isGated ? 3 : 2));
  }

  void addExchange(double share) {
    if (layout.expert == 1)
      return;
    const Group group = {layout.expert, layout.tensor};
    const double hosts = double(links.hostsOf(group)), active = double(model.activeExperts);
    // A token goes once to each host that has experts of it, and is handed on inside.
    const double most = model.expertHosts > 0 ? double(model.expertHosts) : hosts;
    const double reached = std::min(most, hosts * (1 - std::pow(1 - 1 / hosts, active)));
    const double copies = hosts > 1 ? reached : active;
    const double there = problem.precision.isFp8 ? 1 : kElement, back = kElement;
    const double forward = share * links.exchange(group, rows * double(model.width) * copies * (there + back));
    double shownForward = forward, shownBackward = forward;
    if (layout.schedule == Schedule::dualPipe) { // one micro-batch computes while another one's tokens travel
      shownForward = std::max(0.0, forward - sum(time.forward));
      shownBackward = std::max(0.0, forward - sum(time.backward));
    }
    of(time.forward, TimeItem::expert) += shownForward;
    of(time.backward, TimeItem::expert) += shownBackward;
  }

  static double sum(const TimeArray &times) {
    double total = 0;
    for (double seconds : times)
      total += seconds;
    return total;
  }

  void addOuterSweeps() {
    const double parts = model.hasParallelBlocks ? 1 : 2; // norms, and residuals behind them
    const double divided = layout.splitsSequence ? tensor : 1;
    addSweeps(rows * double(model.width) / divided * kElement * parts * (2 + 3));
  }

  void addRecompute() {
    if (layout.recompute >= Recompute::products)
      of(time.backward, TimeItem::recompute) += sum(time.forward);
    if (layout.recompute == Recompute::products)
      of(time.backward, TimeItem::recompute) -=
          of(time.forward, TimeItem::attention) + of(time.forward, TimeItem::context);
    if (layout.recompute == Recompute::sweeps)
      of(time.backward, TimeItem::recompute) += of(time.forward, TimeItem::sweeps) + latentSeconds();
  }

  /// Queries, keys and values from their latents again.
  double latentSeconds() const {
    double seconds = 0;
    const std::vector<Product> products = attentionProducts(model);
    for (size_t index = 1; model.latent.isUsed() && index + 1 < products.size(); ++index)
      seconds += device.product(rows, products[index].inner, products[index].columns / tensor);
    return seconds;
  }

  /// Written, scaled and masked and put through the softmax, dropped out with a mask of bytes, read by the product.
  static constexpr double kScoreBytes = 13;
  /// The same way back: gradient written, dropout undone, softmax's gradient, two products that read it.
  static constexpr double kScoreGradientBytes = 17;

  const CostProblem &problem;
  const ModelSpec &model;
  const Layout &layout;
  Device device;
  Links links;
  double rows, tensor;
  LayerTime time;
};

} // namespace

StageTimes stageTimes(const CostProblem &problem, const Layout &layout) {
  return {LayerClock(problem, layout).layer(), LayerClock(problem, layout).head()};
}

} // namespace heddle::cost
