//===- ThisProgram.h - the file that runs -----------------------*- C++ -*-===//
#ifndef HEDDLE_COMPILER_TOOLS_THISPROGRAM_H
#define HEDDLE_COMPILER_TOOLS_THISPROGRAM_H

#include <filesystem>
#include <string>

namespace heddle::cli {

/// For verbs that start others in processes of their own.
inline std::string thisProgram() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

} // namespace heddle::cli

#endif
