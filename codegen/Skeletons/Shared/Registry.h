// One declaration per skeleton, defined in its own file. Which there are is what files there are:
// codegen/Config/CMakeLists.txt makes the list.
#pragma once

#include "codegen/Skeletons/Shared/Skeleton.h"

#include <string>
#include <vector>

namespace heddle {

struct ConfigField;

#define HEDDLE_SKELETON(accessor) const Skeleton &accessor();
#include "codegen/Skeletons/Shared/heddle_skeletons.inc"
#undef HEDDLE_SKELETON

/// The names of all skeletons, the preferred one first.
std::vector<std::string> skeletonNames();
/// The names of the fields of all their configurations, "skeleton" among them.
std::vector<std::string> configFieldNames();
/// The field of the first family that has it, which calls its values as the others do; null if none has.
const ConfigField *findConfigField(std::string_view field);

} // namespace heddle
