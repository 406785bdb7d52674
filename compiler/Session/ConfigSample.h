// Owns the list of what the tuner may search for one pattern, as text that --config takes. There may be millions: they
// are kept by number, and become text one after the other.
#pragma once

#include "codegen/Skeletons/Shared/ConfigSpace.h"
#include "compiler/Session/CompileSession.h"

namespace heddle {

struct ListedConfig {
  std::string changes; ///< every knob, as --config takes them: "skeleton=NAME,block_m=128,..."
  std::string json;    ///< KernelConfig::json
};

struct SampleSize {
  int64_t count = 0;
  uint64_t seed = 0;
};

/// The feasible points of a skeleton. Whether the compiler spills with one is not known yet.
class ConfigList {
public:
  /// Lists those of the skeleton called `skeleton`, or the first that serves the request. unsupported or notFound: no such
  /// skeleton serves it.
  static Result<ConfigList> of(const PreparedPattern &prepared, const KernelShape &shape, const std::string &skeleton);

  const std::string &skeleton() const { return skeletonName; }
  int64_t feasible() const { return int64_t(points.size()); }

  /// The first `most` in the order of the knobs; or a sample, in a random order that is the same everywhere, a larger
  /// one beginning with a smaller one.
  Status forEach(int64_t most, const std::function<void(const ListedConfig &)> &visit) const;
  Status forEach(const SampleSize &sample, const std::function<void(const ListedConfig &)> &visit) const;

private:
  explicit ConfigList(const Skeleton &skeleton, const KernelRequest &request);
  Status visitFirst(const std::vector<uint64_t> &numbers, int64_t most,
                    const std::function<void(const ListedConfig &)> &visit) const;
  ConfigSpace space;
  std::string skeletonName;
  std::vector<uint64_t> points; ///< ConfigSpace::forEach's numbers of those that are feasible
};

} // namespace heddle
