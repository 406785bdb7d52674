//===- ScratchFolder.cpp - files that are gone afterwards -----------------===//
#include "compiler/Tools/ScratchFolder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace heddle::cli {

Result<ScratchFolder> ScratchFolder::beside(const std::string &path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::string folder = (parent.empty() ? "." : parent.string()) + "/.heddle-XXXXXX";
  if (!::mkdtemp(folder.data()))
    return Status::io("'" + path + "': cannot write in its folder: " + std::strerror(errno));
  return ScratchFolder(std::move(folder));
}

ScratchFolder::ScratchFolder(ScratchFolder &&other) noexcept : folder(std::move(other.folder)) { other.folder.clear(); }

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!folder.empty())
    std::filesystem::remove_all(folder, ignored);
}

} // namespace heddle::cli
