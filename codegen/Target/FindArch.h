// Owns how an architecture is found and named, for code that asks for none of its limits.
#pragma once

#include "runtime/Core/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace heddle {

struct GpuArch;

/// The row that every portable kernel can be built for: the least capable one. Its PTX is what an
/// unknown, newer GPU falls back to.
const GpuArch &baselineGpuArch();

/// The names of all rows, in ascending order of compute capability.
std::vector<std::string> gpuArchNames();

/// How NVRTC spells it, the key of every table.
std::string archName(const GpuArch &arch);

/// The row called `name`. Unknown: a notFound status that lists the names that exist.
Result<const GpuArch *> findGpuArch(std::string_view name);

/// The row that serves a GPU of compute capability major.minor best: an exact row of that very
/// capability first, else the highest minor of the same major that still runs on it.
/// None: a notFound status that lists the capabilities that are served.
Result<const GpuArch *> findGpuArchFor(int major, int minor);

} // namespace heddle
