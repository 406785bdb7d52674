// Owns what one GPU does while links are measured: messages whose bytes are compared, then some that are timed.
#pragma once

#include "runtime/Distributed/NcclTransport.h"

namespace heddle {

/// Members are called by one thread, but leave().
class LinkRank {
public:
  /// On GPU number `ordinal`, with memory for two messages. Collective.
  static Result<std::unique_ptr<LinkRank>> open(const nccl::UniqueId &id, RankOf place, int ordinal, int64_t mostBytes);

  /// Collective: messages until the clocks of the GPUs are those of work.
  Status warm();

  /// Collective: microseconds of one message to the next rank while one comes from the rank before, of the slowest rank:
  /// the median of some rounds. internal: other bytes came than were sent.
  Result<double> measure(int64_t bytes);

  /// Collective: what every rank says of itself.
  Result<std::vector<std::string>> gather(const std::string &mine) { return transport->gather(mine); }
  const Device &device() const { return gpu; }
  void leave(const std::string &why) { transport->abort(why); }

private:
  LinkRank(Device device, DeviceStream stream, DeviceBuffer sent, DeviceBuffer received,
           std::unique_ptr<NcclTransport> transport)
      : gpu(std::move(device)), stream(std::move(stream)), sent(std::move(sent)), received(std::move(received)),
        transport(std::move(transport)) {}
  int32_t next() const { return (transport->rank() + 1) % transport->ranks(); }
  int32_t before() const { return (transport->rank() + transport->ranks() - 1) % transport->ranks(); }
  Status exchange(int64_t bytes);
  Status fill(int64_t bytes);
  Status compare(int64_t bytes);
  Status check(int64_t bytes);
  Status occupy();
  Result<double> time(int64_t bytes, int64_t steps);
  Result<double> slowest(double us);

  Device gpu;
  DeviceStream stream;
  DeviceBuffer sent, received;
  std::unique_ptr<NcclTransport> transport;
};

} // namespace heddle
