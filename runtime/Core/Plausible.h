// Owns the bounds of times and errors that rows of trials and winners, tables and journals may hold. Nothing that is
// read or written by way of these is compared or ranked before it is within them.
#pragma once

#include "runtime/Core/KernelRecord.h"
#include "runtime/Core/LinkRecord.h"

#include <string>
#include <string_view>

namespace heddle {

inline constexpr double kLeastLaunchUs = 0.1; // two events of a GPU with nothing between them are further apart
inline constexpr double kLeastLinkGbps = 1e-3, kMostOfLinks = 1e6; // GB/s each way, and us of a message
inline constexpr double kDaySeconds = 86400;                       // no launch and no compilation is waited for so long

// The largest error that a result of the kind can have and still be right, whatever the sizes of the call: gradients of
// arguments are sums over all pairs, other results over one row or column of them. An empty kind: of any.
double mostErrorOf(std::string_view kind);

// What is wrong with a number, "expected ..., got inf"; empty if nothing is.
std::string wrongTime(double us);                            // of a launch
std::string wrongSeconds(double seconds);                    // of a compilation, 0 if it was not timed
std::string wrongError(double error, std::string_view kind); // of a result that passed for right

// What is wrong with a trial's numbers and outcome: one that is measured has a time and a right result, one that was
// stopped a right result; others may have none. Names the field; empty if nothing is wrong.
std::string wrongNumbers(const TrialNumbers &numbers, std::string_view outcome, std::string_view kind = {});
std::string wrongNumbers(const Trial &trial);
// A winner that was not measured has no time.
std::string wrongNumbers(const Winner &winner);

// Of 1e-3 to 1e6 GB/s, 0 to 1e6 us, two ranks or more.
std::string wrongNumbers(const LinkRecord &links);

} // namespace heddle
