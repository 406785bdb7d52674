//===- RepeatLaunch.h - the same launch many times --------------*- C++ -*-===//
// Owns the search for errors that move: a kernel whose threads race gives other bits now and then on the same input.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Measure/DeviceProblem.h"

namespace heddle {

/// Launches `count` >= 1 times, out and lse poisoned before each, and compares each launch's bits with those of the
/// first, which `results` hold afterwards. invalidArgument: a launch left an
/// element unwritten or gave other bits; the message names the launch, the element, both values and their bits.
Status repeatLaunch(DeviceProblem &problem, const std::function<Status()> &launch, int64_t count, RoleTensors &results);

} // namespace heddle
