// Owns the interface between a plan over ranks and what carries its messages: one object for each rank of a group. Which
// bytes go where is the plan's; a transport knows ranks, addresses and time limits only.
#pragma once

#include "runtime/Core/Status.h"

#include <chrono>
#include <string>
#include <vector>

namespace heddle {

// Of memory that the transport reaches: the host's, or that of the rank's GPU.
struct SentBytes {
  int32_t peer;
  const void *data;
  uint64_t bytes;
};
struct ReceivedBytes {
  int32_t peer;
  void *data;
  uint64_t bytes;
};

// All sends and receives of one step are under way together, in any order; those between two ranks match in the order
// in which each of them lists them, over all steps.
struct Exchange {
  std::vector<SentBytes> sends;
  std::vector<ReceivedBytes> receives;
};

// How long a rank waits for others before it says that they are lost.
inline constexpr std::chrono::milliseconds kDefaultRankLimit{30'000};

// One rank's end. Used by one thread at a time, but abort. After a failing call every further one fails.
class Transport {
public:
  virtual ~Transport() = default;
  virtual int32_t rank() const = 0;
  virtual int32_t ranks() const = 0;

  // Collective, on the host: what every rank gave, by rank. unavailable: a rank did not come within the limit, or left;
  // it is named.
  virtual Result<std::vector<std::string>> gather(const std::string &mine) = 0;

  // Enqueues the step on `stream` (a CUstream), where the transport has streams, else it has happened on return: then
  // the memory may be used again. unavailable names a rank that is lost.
  virtual Status exchange(const Exchange &step, void *stream) = 0;

  // Waits until everything that was enqueued has happened. unavailable: not within the limit, or a rank left; peers whose
  // messages are missing are named.
  virtual Status wait(void *stream) = 0;

  // From any thread. The rank leaves: calls that wait return at once, here and on the other ranks, which are told why.
  virtual void abort(const std::string &why) = 0;
};

} // namespace heddle
