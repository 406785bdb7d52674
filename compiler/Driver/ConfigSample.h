//===- ConfigSample.h - feasible configurations of a skeleton ---*- C++ -*-===//
// Owns the list of what the tuner may search for one pattern, as text that --config takes.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_DRIVER_CONFIGSAMPLE_H
#define HEDDLE_COMPILER_DRIVER_CONFIGSAMPLE_H

#include "compiler/Driver/CompileSession.h"

namespace heddle {

struct ListedConfig {
  std::string changes; ///< every knob, as --config takes them: "skeleton=NAME,block_m=128,..."
  std::string json;    ///< KernelConfig::json
};

struct ConfigList {
  std::string skeleton;
  int64_t feasible = 0; ///< how many there are
  std::vector<ListedConfig> configs;
};

struct SampleSize {
  int64_t count = 0;
  uint64_t seed = 0;
};

/// The feasible points of the skeleton called `skeleton`, or of the first that serves the request, in the order of the
/// knobs; or so many of them in a random order that is the same everywhere, a larger sample beginning with a smaller
/// one. Whether the compiler spills with one is not known yet. unsupported or notFound: no such skeleton serves it.
Result<ConfigList> listConfigs(const PreparedPattern &prepared, const KernelShape &shape, const std::string &skeleton,
                               const std::optional<SampleSize> &sample);

} // namespace heddle

#endif
