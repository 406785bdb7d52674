// Owns the separation of a search from the kernels that it tries: they run in a child, which is killed when it does not
// answer and started again after a kernel that never ends, breaks the context or takes the process down. The search,
// and the database that it writes, are never in a process that runs a candidate.
#pragma once

#include "compiler/Measure/KernelMeasurer.h"

namespace heddle {

/// The verb of heddle that serves such a search.
inline constexpr const char *kMeasureVerb = "measure-candidates";

/// Starts `program measure-candidates` and returns at once: ready() waits for it, and fails as it did. `ordinal`: the
/// GPU.
Result<std::unique_ptr<KernelMeasurer>> measureElsewhere(const std::string &program, const PatternFile &file,
                                                         int ordinal, const MeasureSetup &setup);

/// The other side: answers what comes over the socket until it closes.
Status serveMeasurements(int socket);

} // namespace heddle
