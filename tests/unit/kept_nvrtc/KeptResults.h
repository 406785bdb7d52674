// What NVRTC answered, as files of one folder: one a compilation, named by the digest of all that went into it. A file is
// written beside its place and renamed, so that processes may share a folder; one that is not whole, or that lies under
// another name than its own, counts as absent.
#ifndef HEDDLE_TESTS_UNIT_KEPT_NVRTC_KEPT_RESULTS_H
#define HEDDLE_TESTS_UNIT_KEPT_NVRTC_KEPT_RESULTS_H

#include <optional>
#include <string>
#include <string_view>

namespace heddle::kept {

/// One output of a program: the number that NVRTC returned for it, and the bytes where that is 0.
struct Output {
  int code = 0;
  std::string bytes;
};

struct Compilation {
  int code = 0;
  Output log, ptx, cubin;
};

class ResultFolder {
public:
  explicit ResultFolder(std::string path) : folder(std::move(path)) {}

  /// What was kept under this name; a file that is found is marked as used today.
  std::optional<Compilation> find(const std::string &name) const;
  /// Does nothing where the folder cannot be written: the next process compiles once more.
  void keep(const std::string &name, const Compilation &result) const;

private:
  std::string fileOf(const std::string &name) const { return folder + "/" + name + ".nvrtc"; }

  std::string folder;
};

/// A log whose times are zero, as those of a result that was not compiled are.
std::string withZeroTimes(std::string_view log);

} // namespace heddle::kept

#endif
