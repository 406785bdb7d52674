//===- ScratchFolder.h - files that are gone afterwards ---------*- C++ -*-===//
// Owns a folder of its own on the file system of a result, removed with all in it.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_TOOLS_SCRATCHFOLDER_H
#define HEDDLE_COMPILER_TOOLS_SCRATCHFOLDER_H

#include "runtime/Core/Status.h"

#include <string>

namespace heddle::cli {

/// Move-only.
class ScratchFolder {
public:
  /// In the folder of `path`, so that a result can be renamed. io if it cannot be made there.
  static Result<ScratchFolder> beside(const std::string &path);
  ScratchFolder(ScratchFolder &&other) noexcept;
  ScratchFolder &operator=(ScratchFolder &&other) = delete;
  ~ScratchFolder();

  std::string file(const std::string &name) const { return folder + "/" + name; }

private:
  explicit ScratchFolder(std::string folder) : folder(std::move(folder)) {}
  std::string folder;
};

} // namespace heddle::cli

#endif
