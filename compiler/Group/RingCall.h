// Owns what predicted times of calls over ranks are asked for: sizes of the whole, and how fast kernels, memory and links are.
#pragma once

#include "codegen/Target/GpuModel.h"
#include "runtime/Core/DType.h"
#include "runtime/Core/Kinds.h"

#include <algorithm>

namespace heddle {

struct RingRates {
  double linkGBps = 0, latencyUs = 0; ///< each way of a rank's link, of a message; beyond hosts, where there are some
  double tflops = 0;                  ///< of kernels, on kept pairs
  // What only the time of a plan knows (GroupTimes.h); 0: nothing is said of it.
  double launchUs = 0;   ///< of a launch behind the first one
  double memoryGBps = 0; ///< of device memory
  double tileTflops = 0; ///< of one processor of the GPU
  // So many consecutive ranks are of a host, and have links among them; 0: all links are alike.
  int64_t hostRanks = 0;
  double hostGBps = 0, hostLatencyUs = 0;

  /// Of kernels that copy, add or convert so many bytes: 604 MB take an H200 145 us, 126 at its data sheet.
  double memoryMs(double bytes) const {
    constexpr double kShareOfMemory = 0.87;
    return memoryGBps > 0 ? bytes / (kShareOfMemory * memoryGBps * 1e6) : 0;
  }

  bool areOfHost(int64_t rank, int64_t peer) const { return hostRanks > 0 && rank / hostRanks == peer / hostRanks; }

  /// Of kernels at a rate on this GPU. A call's rate may be that of a GPU which is seldom full: a tile of it is as fast as
  /// kernels that fill it are.
  void setKernels(const GpuModel &gpu, double rate, double rateOfFullGpu) {
    memoryGBps = gpu.bandwidthGBps;
    tflops = rate;
    tileTflops = std::max(rate, rateOfFullGpu) / double(gpu.smCount);
  }
};

/// Of kernels, of launches (us), and of links between GPUs of a host (GB/s each way, us of a message): as two H200 and two
/// H100 take them (docs/distributed.md).
inline constexpr double kKernelEfficiency = 0.65, kLaunchUs = 40, kHostLinkGBps = 150, kHostLatencyUs = 10;
inline constexpr const char *kGpuOfRates = "h200";

/// What a rank sends and receives at a time. Links within its host and beyond carry it side by side.
class LinkLoad {
public:
  void send(bool isOfHost, double bytes, int64_t messages = 1) { add(isOfHost, &Link::out, bytes, messages); }
  void receive(bool isOfHost, double bytes, int64_t messages = 1) { add(isOfHost, &Link::in, bytes, messages); }
  bool isSome() const { return links[0].bytes() > 0 || links[1].bytes() > 0; }
  double received() const { return links[0].in.bytes + links[1].in.bytes; }
  double receivedFromBeyond() const { return links[0].in.bytes; }

  /// Messages of a direction that follow each other each cost their latency.
  double ms(const RingRates &rates, bool isOneMessage = true) const {
    return std::max(msOf(links[0], rates.linkGBps, rates.latencyUs, isOneMessage),
                    msOf(links[1], rates.hostGBps, rates.hostLatencyUs, isOneMessage));
  }

private:
  struct Flow {
    double bytes = 0;
    int64_t messages = 0;
  };
  struct Link {
    Flow in, out;
    double bytes() const { return std::max(in.bytes, out.bytes); }
  };
  void add(bool isOfHost, Flow Link::*direction, double bytes, int64_t messages) {
    Flow &flow = links[isOfHost].*direction;
    if (bytes > 0)
      flow.bytes += bytes, flow.messages += messages;
  }
  static double msOf(const Link &link, double gbps, double latencyUs, bool isOneMessage) {
    if (!(link.bytes() > 0))
      return 0;
    const int64_t messages = isOneMessage ? 1 : std::max(link.in.messages, link.out.messages);
    return link.bytes() / (gbps * 1e6) + double(messages) * latencyUs * 1e-3;
  }
  Link links[2]; ///< beyond the host, and within it
};

/// What is computed on a plan of forward steps.
struct RingCall {
  Kind kind = {};
  int64_t batch = 1, heads = 1, kvHeads = 1, headDim = 128, valueDim = 128;
  DType dtype = kDefaultDType;
  RingRates rates = {};

  /// The bytes of k and v for one key of one of their heads.
  int64_t bytesOfKey() const { return batch * (headDim + valueDim) * dtypeBytes(dtype); }
  int64_t gradientBytesOfKey() const { return kind.isBackward() ? batch * (headDim + valueDim) * 4 : 0; }

  /// The same over teams of so many ranks that exchange heads, of those of a member.
  RingCall ofTeams(int64_t headRanks) const {
    RingCall call = *this;
    call.heads = heads / headRanks, call.kvHeads = std::max<int64_t>(1, kvHeads / headRanks);
    return call;
  }
};

} // namespace heddle
