// Owns the transport between ranks that share an address space: a message is a copy from the sender's memory, made by
// the receiver while the sender waits. For tests and for sequences over the processors of one machine.
#pragma once

#include "runtime/Distributed/Transport.h"

#include <memory>

namespace heddle {

// One transport for each rank, in order; every one is used by a thread of its own. Memory is the host's.
std::vector<std::unique_ptr<Transport>> localTransports(int32_t ranks,
                                                        std::chrono::milliseconds limit = kDefaultRankLimit);

} // namespace heddle
