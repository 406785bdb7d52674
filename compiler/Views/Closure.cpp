// One set of bits per node, one pass over the graph per layer.
#include "compiler/Views/Quality.h"

#include <algorithm>

namespace heddle::views {
namespace {

class Reach {
public:
  explicit Reach(int64_t nodes) : nodes(nodes), words((nodes + 63) / 64), bits(nodes * words) {
    for (int64_t i = 0; i < nodes; ++i)
      bits[i * words + i / 64] |= uint64_t(1) << (i % 64);
  }

  /// One more layer; false if nothing new is connected.
  bool advance(const AttentionGraph &graph) {
    std::vector<uint64_t> next = bits;
    for (int64_t i = 0; i < nodes; ++i)
      for (int32_t source : graph[i])
        for (int64_t w = 0; w < words; ++w)
          next[i * words + w] |= bits[source * words + w];
    const bool isNew = next != bits;
    bits = std::move(next);
    return isNew;
  }

  int64_t connected(bool isCausal) const {
    int64_t count = 0;
    for (int64_t i = 0; i < nodes; ++i)
      for (int64_t w = 0; w < words; ++w)
        count += __builtin_popcountll(bits[i * words + w] & wanted(i, w, isCausal));
    return count;
  }

private:
  /// The bits of word `w` of node `i` that are up to i.
  static uint64_t wanted(int64_t i, int64_t w, bool isCausal) {
    const int64_t upTo = i - 64 * w; // the last wanted bit
    return !isCausal || upTo >= 63 ? ~uint64_t(0) : upTo < 0 ? 0 : (uint64_t(2) << upTo) - 1;
  }

  int64_t nodes, words;
  std::vector<uint64_t> bits;
};

} // namespace

ClosureDepth closureDepth(const AttentionGraph &graph, bool isCausal) {
  const int64_t nodes = static_cast<int64_t>(graph.size());
  const int64_t wanted = isCausal ? nodes * (nodes + 1) / 2 : nodes * nodes;
  ClosureDepth depth;
  Reach reach(nodes);
  while (reach.connected(isCausal) < wanted && reach.advance(graph))
    ++depth.settledAfter;
  const int64_t connected = reach.connected(isCausal);
  depth.connected = wanted ? double(connected) / double(wanted) : 1;
  if (connected == wanted)
    depth.layers = std::max<int64_t>(depth.settledAfter, 1);
  return depth;
}

} // namespace heddle::views
