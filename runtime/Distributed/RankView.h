// Owns how a walk sees the ranks of a group: those that follow it together, under numbers of their own.
#pragma once

#include "runtime/Distributed/Transport.h"

namespace heddle {

// Rank n of the walk is rank first + step * n of the group.
class RankView {
public:
  explicit RankView(Transport &transport, int32_t first = 0, int32_t step = 1)
      : transport(&transport), first(first), step(step) {}

  // As that of the transport.
  Status exchange(Exchange messages, void *stream) const {
    for (SentBytes &sent : messages.sends)
      sent.peer = first + step * sent.peer;
    for (ReceivedBytes &received : messages.receives)
      received.peer = first + step * received.peer;
    return transport->exchange(messages, stream);
  }

private:
  Transport *transport;
  int32_t first, step;
};

} // namespace heddle
