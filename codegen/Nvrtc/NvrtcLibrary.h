// Owns the search for libnvrtc and the functions taken from it, through declarations of our own: a
// program builds and starts without a CUDA toolkit. tests/unit/nvrtc_test.cpp compares the numbers
// below with nvrtc.h where that exists.
//
// Environment, read in NvrtcSearch::fromEnvironment() only:
//   HEDDLE_NVRTC_LIBRARY  the library file, or the folder that holds it; nothing else is tried
//   CUDA_HOME             a toolkit; its lib64 is tried first
#pragma once

#include "runtime/Core/Status.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace heddle {

/// NVRTC's own result numbers that are told apart here.
enum class NvrtcCode : int { success = 0, invalidOption = 5, compilation = 6 };

struct NvrtcProgramImpl;
using NvrtcProgram = NvrtcProgramImpl *;

/// The entry points, with NVRTC's signatures; result numbers are plain ints.
struct NvrtcFunctions {
  const char *(*getErrorString)(int);
  int (*version)(int *, int *);
  int (*getNumSupportedArchs)(int *);
  int (*getSupportedArchs)(int *);
  int (*createProgram)(NvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *);
  int (*destroyProgram)(NvrtcProgram *);
  int (*compileProgram)(NvrtcProgram, int, const char *const *);
  int (*getPtxSize)(NvrtcProgram, size_t *);
  int (*getPtx)(NvrtcProgram, char *);
  int (*getCubinSize)(NvrtcProgram, size_t *);
  int (*getCubin)(NvrtcProgram, char *);
  int (*getLogSize)(NvrtcProgram, size_t *);
  int (*getLog)(NvrtcProgram, char *);
};

/// Where to look: `library` alone if it is set; else the folders in order and then the loader's path, all
/// of them for the newest version before any of them for an older one.
struct NvrtcSearch {
  std::string library;
  std::vector<std::string> folders;
  bool askLoader = true;

  /// $HEDDLE_NVRTC_LIBRARY; $CUDA_HOME/lib64; the folders near the library that holds this code and near the running
  /// program; /usr/local/cuda/lib64.
  static NvrtcSearch fromEnvironment();

  /// Appends where an NVRTC may lie that came along with the file `binary`: heddle/nvrtc beside it (what an
  /// installation of libheddle holds), nvrtc beside and above it (an unpacked wheel is fine), lib above it, and the
  /// folders of the vendor's wheels in the site-packages that holds a Python package's lib folder.
  void addFoldersNear(const std::string &binary);
};

/// An open NVRTC. Immutable and safe to use from any number of threads; stays loaded until the
/// process ends.
class NvrtcLibrary {
public:
  /// Opens the first library that loads and has every function. None: unavailable, with every
  /// place that was tried and how to get NVRTC. A library that was named explicitly and fails is
  /// never replaced by another one.
  static Result<std::shared_ptr<const NvrtcLibrary>> open(const NvrtcSearch &search);

  /// open(NvrtcSearch::fromEnvironment()), done once per process on the first call; a failure is
  /// kept too.
  static const Result<std::shared_ptr<const NvrtcLibrary>> &shared();

  const NvrtcFunctions &functions() const { return entries; }
  /// The path that was asked for; a bare name if the loader's path was searched.
  const std::string &path() const { return file; }
  /// The path that the loader opened.
  std::string loadedFile() const;
  int majorVersion() const { return major; }
  /// "13.0"
  std::string versionText() const { return std::to_string(major) + "." + std::to_string(minor); }
  /// Compute capabilities it compiles for, as 10 * major + minor, ascending.
  const std::vector<int> &supportedCapabilities() const { return capabilities; }

private:
  NvrtcLibrary() = default;
  static Result<std::shared_ptr<const NvrtcLibrary>> openNamed(const std::string &name);
  static Result<std::shared_ptr<const NvrtcLibrary>> openFirst(const NvrtcSearch &search);
  static Result<std::shared_ptr<const NvrtcLibrary>> load(const std::string &file);
  Status resolve(void *handle);
  Status query();
  void loadBuiltins() const;

  NvrtcFunctions entries = {};
  std::string file;
  int major = 0;
  int minor = 0;
  std::vector<int> capabilities;
};

} // namespace heddle
