//===- SkeletonNames.h - what skeletons are called ----------------------------------------===//
// For who offers them and needs to know no more.
#ifndef HEDDLE_CODEGEN_SKELETONS_SKELETONNAMES_H
#define HEDDLE_CODEGEN_SKELETONS_SKELETONNAMES_H

#include <string>
#include <vector>

namespace heddle {

/// Of all skeletons, the preferred one first.
std::vector<std::string> skeletonNames();
/// Of the fields of all their configurations, "skeleton" among them.
std::vector<std::string> configFieldNames();

} // namespace heddle

#endif // HEDDLE_CODEGEN_SKELETONS_SKELETONNAMES_H
