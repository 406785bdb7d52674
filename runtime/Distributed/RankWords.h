// Owns how messages name ranks and limits, whatever carries the messages.
#pragma once

#include "runtime/Core/Status.h"

#include <chrono>
#include <string>
#include <vector>

namespace heddle {

// "rank 3", "ranks 0, 2, 5"; of more than sixteen the first and how many others.
std::string ranksText(const std::vector<int32_t> &ranks);

// "30 s", "250 ms"
std::string limitText(std::chrono::milliseconds limit);

// unavailable: "exchange: waited 30 s for rank 3"
Status notCome(const char *operation, const std::string &awaited, std::chrono::milliseconds limit);

} // namespace heddle
