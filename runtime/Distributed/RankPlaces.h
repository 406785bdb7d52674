// Owns the rule that each rank has a GPU of its own, for transports of every kind: two ranks that wait for each other on
// one GPU may wait for ever.
#pragma once

#include "runtime/Device/Device.h"
#include "runtime/Distributed/Transport.h"

namespace heddle {

// The machine's own: the same in all its containers, as long as it runs.
std::string machineName();

// Names the GPU among those of all machines: "00000000:1b:00.0 of <the machine>". The same in all containers of one
// machine, as long as it runs.
std::string placeOf(const Device &device);

// Collective: every rank gives its own place. invalidArgument, on every rank: two have the same one; both are named.
Status checkPlaces(Transport &transport, const std::string &place);

} // namespace heddle
