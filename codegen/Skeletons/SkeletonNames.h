//===- SkeletonNames.h - what skeletons are called ----------------------------------------===//
// For who offers them and needs to know no more.
#ifndef HEDDLE_CODEGEN_SKELETONS_SKELETONNAMES_H
#define HEDDLE_CODEGEN_SKELETONS_SKELETONNAMES_H

#include <string>
#include <vector>

namespace heddle {

/// Of all skeletons, the preferred one first.
std::vector<std::string> skeletonNames();

} // namespace heddle

#endif // HEDDLE_CODEGEN_SKELETONS_SKELETONNAMES_H
