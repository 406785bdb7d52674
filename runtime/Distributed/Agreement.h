// Owns how the ranks of a group find out, before anything is sent, that one of them is about to do something else.
#pragma once

#include "runtime/Distributed/Transport.h"

#include <set>
#include <string>

namespace heddle {

// What the ranks of a group have found to be the same on all of them: calls that are like an earlier one need not meet.
using Agreements = std::set<std::string>;

// Collective, unless the ranks have agreed on this text before: `mine` has a line for each thing that must be alike, or
// is why the rank cannot take part. invalidArgument: the first line that differs, and whose. unavailable: another rank
// takes no part, or is lost. unsupported: they may not meet now, and have not agreed before.
Status agree(const Result<std::string> &mine, Transport &transport, Agreements &agreed, bool mayMeet);

} // namespace heddle
