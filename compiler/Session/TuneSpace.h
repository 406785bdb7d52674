// Owns the translation between a skeleton's configurations and the points of a search space. Knows no device and no
// MLIR.
#pragma once

#include "compiler/Session/CompileSession.h"
#include "compiler/Session/PreparedPattern.h"
#include "tuner/Space/SearchSpace.h"

#include <memory>
#include <optional>

namespace heddle {

class KernelConfig;
struct KernelRequest;
class ConfigSpace;
class Skeleton;

/// The skeleton's knobs and constraints as the tuner takes them; points of both spaces have the same indices.
Result<tuner::SearchSpace> searchSpaceOf(const Skeleton &skeleton, std::shared_ptr<const ConfigSpace> configs);

/// One pattern, one shape, one skeleton. Immutable and thread safe; shared, because a compilation may still run when
/// the session that wants it has ended.
class TuneSpace {
public:
  /// `skeleton`: its name; empty: the first that serves the request.
  static Result<std::shared_ptr<const TuneSpace>> create(PreparedPattern prepared, const KernelShape &shape,
                                                         const std::string &skeleton);

  const PreparedPattern &pattern() const { return prepared; }
  const KernelRequest &request() const { return *kernel; }
  const tuner::SearchSpace &space() const { return points; }

  const Skeleton &family() const { return skeleton; }
  std::string familyName() const; ///< Skeleton::name

  Result<CompiledVariant> compile(const tuner::Point &point) const;
  KernelConfig configAt(const tuner::Point &point) const;
  /// Fewer changes from the default come first: the default is meant to be close. Tiles that grow with their chunk
  /// count as one change.
  double distanceFromDefault(const tuner::Point &point) const;
  /// The text of the point that the default is; empty if it is none.
  std::string defaultPoint() const;
  /// The text of the point that a stored configuration (KernelRecord::config) is; empty if it is none of this space.
  Result<std::string> pointOf(const std::string &config) const;

private:
  TuneSpace(PreparedPattern prepared, std::shared_ptr<const KernelRequest> kernel, const Skeleton &skeleton,
            std::shared_ptr<const ConfigSpace> configs, tuner::SearchSpace points);

  PreparedPattern prepared;
  std::shared_ptr<const KernelRequest> kernel;
  const Skeleton &skeleton;
  std::shared_ptr<const ConfigSpace> configs;
  tuner::SearchSpace points;
  std::optional<size_t> blockKnob, chunkKnob; ///< places of block_n and chunk_n, where both are knobs
};

} // namespace heddle
