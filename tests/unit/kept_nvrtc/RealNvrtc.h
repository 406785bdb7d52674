// The NVRTC behind the kept results, and the name of what it would be asked to compile.
//
// Environment:
//   HEDDLE_NVRTC_BEHIND  the library file or its folder, as HEDDLE_NVRTC_LIBRARY names it; else heddle's own search
//   HEDDLE_NVRTC_CACHE   the folder of kept results; without it everything is compiled
#ifndef HEDDLE_TESTS_UNIT_KEPT_NVRTC_REAL_NVRTC_H
#define HEDDLE_TESTS_UNIT_KEPT_NVRTC_REAL_NVRTC_H

#include "codegen/Nvrtc/NvrtcLibrary.h"

#include <string>
#include <vector>

namespace heddle::kept {

/// Opened on the first call; null where there is none.
const NvrtcLibrary *realNvrtc();

/// All that a program was created from.
struct ProgramText {
  std::string name, text;
  std::vector<std::string> headerNames, headerTexts;
};

/// The digest of the program, the options and the library that compiles it: its version, and the build id of its file, or
/// size and time where it has none. Fresh copies of one library are one library.
std::string nameOf(const NvrtcLibrary &nvrtc, const ProgramText &program, const std::vector<std::string> &options);

/// Whether the outputs follow from what nameOf() reads, and the call leaves nothing else behind: no folders to search, no
/// files of precompiled headers or times.
bool dependsOnTextAlone(const std::vector<std::string> &options);

} // namespace heddle::kept

#endif
