// Owns the link model: what collectives of a group of ranks take. Ranks of a group may lie in one host, or in several,
// then as many of them in each as the group has there use as many links out of it at once.
#pragma once

#include "runtime/Core/Status.h"

#include <cstdint>
#include <string>

namespace heddle::cost {

struct Accelerator {
  std::string name, fullName;
  double tflops = 0;        ///< dense, 16 bits
  double fp8Tflops = 0;     ///< 0: it has none
  double bandwidthGBps = 0; ///< device memory
  double memoryGiB = 0, watts = 0;
  double units = 0; ///< that products are dealt out to: SMs
};

/// A row of the GPU table with what planning needs beyond it. notFound as findGpuModel; unsupported: a row whose memory
/// and power nobody wrote down.
Result<Accelerator> findAccelerator(const std::string &name);

struct Link {
  double gbps = 0; ///< 1e9 bytes per second that a GPU sends, and receives
  double us = 0;   ///< of a message
};

struct Cluster {
  Accelerator gpu;
  int64_t gpus = 0, perHost = 8;
  Link inside, between;
  Link beyond = {};         ///< between pods, where there are several
  int64_t podGpus = 0;      ///< 0: one pod
  double hostLinkGBps = 0;  ///< of a GPU to the memory of its host, for offload; 0: none
  double hostMemoryGiB = 0; ///< of a host, for activations
  double otherWatts = 0;    ///< of a host beside its GPUs
  double overhead = 1;      ///< power of the building over that of the machines
};

/// Ranks that talk: `size` of them, each `stride` GPUs from the next.
struct Group {
  int64_t size = 1, stride = 1;
};

class Links {
public:
  explicit Links(const Cluster &cluster) : cluster(cluster) {}

  /// Seconds. `bytes` is what a rank holds at the end of a gather, or at the start of a scatter.
  double gather(const Group &group, double bytes) const;
  double scatter(const Group &group, double bytes) const { return gather(group, bytes); }
  double reduce(const Group &group, double bytes) const { return 2 * gather(group, bytes); }
  /// `bytes` of each rank go to all others evenly.
  double exchange(const Group &group, double bytes) const;
  /// From one rank to the next of the group.
  double send(const Group &group, double bytes) const;

  int64_t hostsOf(const Group &group) const;

private:
  /// Groups that do not divide a host lie in two.
  bool isInHost(const Group &group) const { return cluster.perHost % (group.size * group.stride) == 0; }
  int64_t inHost(const Group &group) const;
  /// Bytes per second through which a ring of the group goes, of one rank.
  double ringRate(const Group &group) const;
  const Link &widest(const Group &group) const;

  const Cluster &cluster;
};

} // namespace heddle::cost
