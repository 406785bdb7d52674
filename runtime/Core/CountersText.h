// Owns the names of the counters for programs that collect metrics. docs/operations.md lists them; a test compares.
#pragma once

#include "runtime/Core/Counters.h"

namespace heddle {

// In the text format of OpenMetrics 1.0, its last line "# EOF". Of counters that others add to meanwhile it is one moment
// each.
std::string metricsText(const Counters &counters);

} // namespace heddle
