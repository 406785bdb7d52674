// Owns how KernelRecord::cubin and ptx hold the code of several kernels, one for each launch of the plan or one for all:
// a line "heddle-images 1 BYTES BYTES ..." and then the images, a zero byte behind each. A single image is
// stored as it is.
#pragma once

#include "runtime/Core/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// KernelRecord::contentKey: of what decides each code, in the order of the launches, and of the plan that launches
// them.
std::string contentKeyOf(const std::vector<std::string> &codeKeys, std::string_view plan);

// Empty if every image is.
std::string joinImages(const std::vector<std::string> &images);

// The inverse, for `count` launches, which may all run a single image; the views are into `text`, and a zero byte
// follows each if one follows `text`. corrupt: there are some, but not `count` images, or the text does not end with
// them.
Result<std::vector<std::string_view>> splitImages(std::string_view text, size_t count);

} // namespace heddle
