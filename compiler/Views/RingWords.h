// Owns how texts about calls over ranks say times, links and lines.
#pragma once

#include "compiler/Views/ExplanationPrint.h"
#include "compiler/Views/RingPlan.h"
#include "runtime/Core/CountText.h"

#include <cstdio>

namespace heddle::views {

inline std::string real(const char *form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

inline std::string milliseconds(double ms) {
  return ms >= 1000 ? real("%.2f s", ms / 1000) : ms >= 1 ? real("%.2f ms", ms) : real("%.1f us", ms * 1000);
}

/// On the right of a column.
inline std::string cell(const std::string &text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

inline std::string labelled(const std::string &label, const std::string &value) {
  return "  " + label + std::string(17 - label.size(), ' ') + value + "\n";
}

/// Of all links, and where their rates are from.
inline std::string linkWords(const RingRequest &request) {
  auto words = [](double gbps, double latencyUs) {
    return real("%.4g", gbps) + " GB/s each way and " + real("%.4g", latencyUs) + " us a message";
  };
  const RingRates &rates = request.call.rates;
  return words(rates.linkGBps, rates.latencyUs) +
         (rates.hostRanks ? ", within a host of " + counted(rates.hostRanks, "rank") + " " +
                                words(rates.hostGBps, rates.hostLatencyUs)
                          : "") +
         (request.linkNote.empty() ? "" : " (" + request.linkNote + ")");
}

} // namespace heddle::views
