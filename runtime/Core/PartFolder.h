// Owns the folder beside a result in which the result is made, so that it takes its name by one rename. The folder is
// this user's alone and locked (flock) as long as its process lives; whoever makes one removes those in the same place
// whose processes are gone.
#pragma once

#include "runtime/Core/Status.h"

#include <string>

namespace heddle {

// Move-only; removed with all in it when destroyed.
class PartFolder {
public:
  // In the folder of `target`, and so on its file system. denied without the right to write there, else io.
  static Result<PartFolder> beside(const std::string &target);
  PartFolder(PartFolder &&other) noexcept;
  PartFolder &operator=(PartFolder &&other) = delete;
  ~PartFolder();

  std::string file(const std::string &name) const { return path + "/" + name; }

private:
  PartFolder(std::string path, int lock) : path(std::move(path)), lock(lock) {}

  std::string path;
  int lock; // a descriptor of the folder; below 0 where the file system has no such locks, whose folders stay when left
            // behind
};

} // namespace heddle
