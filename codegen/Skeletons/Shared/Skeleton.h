// What a skeleton must say about itself: when it applies, what can be tuned, what is feasible and
// why not, where its tiles lie, how it is launched, which constants its device file reads. Skeletons are
// stateless and immutable: every function depends on its arguments only and is thread safe.
// Found by its files (Registry.h). The types that only pass through are declared, not included: who makes or reads
// them includes them.
#pragma once

#include "codegen/Config/Constraint.h"
#include "runtime/Core/Status.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

enum class KindBase : uint8_t;
struct ConfigFields;
struct GpuArch;
struct Kind;
struct LaunchPlan;
struct ScheduleFacts;
class SmemLayout;

/// A kernel that launches name, and the type whose run() it is: `Kernel`, or a member of it, or another one.
struct KernelEntry {
  std::string name, type;
  int64_t clusterBlocks = 0; ///< blocks of a cluster; 0: there are none
};

class Skeleton {
public:
  virtual ~Skeleton() = default;

  /// What its configurations are made of.
  virtual const ConfigFields &fields() const = 0;
  /// ConfigFields::skeleton, and the stem of the device file.
  std::string_view name() const;
  /// The embedded device file, as EmbeddedFile::name.
  std::string deviceFile() const;
  /// Text behind it: `Kernel`, which is the class template of that file with KernelTraits and Pattern, and for each
  /// entry a kernel that calls its run().
  std::string kernels(const KernelRequest &request, const KernelConfig &config) const;

  /// The kind of the calls that its kernels serve, whatever they do with their results.
  virtual KindBase kind() const = 0;
  /// The instructions that it is made of are those of this architecture.
  virtual bool servesArch(const GpuArch &arch) const = 0;
  /// What these are, for the refusal of others.
  virtual const char *instructions() const = 0;
  /// Ok, or unsupported with its name and what it serves instead.
  Status appliesTo(const KernelRequest &request) const;

  /// The search space before constraints. The functions from here on need a request that applies.
  virtual std::vector<Knob> knobs(const KernelRequest &request) const = 0;
  virtual const std::vector<Constraint> &constraints() const = 0;
  /// Feasible for every request that applies.
  virtual KernelConfig defaultConfig(const KernelRequest &request) const = 0;
  /// Fallback configurations: feasible ones to try, in this order, when the compiler spills with the default.
  virtual std::vector<KernelConfig> fallbackConfigs(const KernelRequest &request) const;
  /// With the fields that are no choice but follow from others, so that changing one knob alone stays meaningful.
  /// The configuration may be infeasible.
  virtual KernelConfig derived(const KernelRequest &request, KernelConfig config) const;
  /// Without choices of the default that other fields, changed since, do not allow.
  virtual KernelConfig takenBack(KernelConfig config) const;

  /// What estimates of time ask of it.
  virtual ScheduleFacts schedule(const KernelConfig &config) const = 0;

  /// The functions from here on need a feasible configuration.
  virtual SmemLayout planSmem(const KernelRequest &request, const KernelConfig &config) const = 0;
  /// The layout of one kernel by itself.
  virtual LaunchPlan planLaunch(const KernelRequest &request, const KernelConfig &config) const = 0;
  /// Text of `struct KernelTraits`: request, configuration and shared-memory plan.
  virtual std::string traits(const KernelRequest &request, const KernelConfig &config) const = 0;

  /// What each kernel of a call is asked to do, in the order of their launches: `request`, or that of its passes.
  static std::vector<KernelRequest> kernelsOf(const KernelRequest &request, const KernelConfig &config);
  /// The layout of all kernels of a call.
  LaunchPlan planCall(const KernelRequest &request, const KernelConfig &config) const;

  /// planLaunch of the default, for who knows no configurations.
  LaunchPlan defaultPlan(const KernelRequest &request) const;

  /// The first constraint that refuses the configuration; nothing when it is feasible. A
  /// configuration of another skeleton is refused too.
  std::optional<Rejection> whyInfeasible(const KernelRequest &request, const KernelConfig &config) const;

protected:
  /// What a source exports, in this order.
  virtual std::vector<KernelEntry> entries(const KernelRequest &, const KernelConfig &) const {
    return {{"heddle_kernel", "Kernel"}};
  }
  /// Judges a valid request of its kind and architecture: ok, or unsupported with what it serves instead.
  virtual Status checkRequest(const KernelRequest &request) const = 0;
};

/// All skeletons, the preferred one first.
const std::vector<const Skeleton *> &skeletons();
/// Those whose kernels serve calls of a kind, likewise.
std::vector<const Skeleton *> skeletonsOf(const Kind &kind);

/// Reads a record's text. invalidArgument: as KernelConfig::parse. notFound: of no skeleton that there is.
Result<KernelConfig> readConfig(std::string_view text);

/// By name. Unknown: notFound with the names that exist.
Result<const Skeleton *> findSkeleton(std::string_view name);

/// The first skeleton that applies. None: unsupported with every skeleton's reason.
Result<const Skeleton *> chooseSkeleton(const KernelRequest &request);

/// The one called `name` if it applies; chooseSkeleton for "". notFound lists the names that exist.
Result<const Skeleton *> skeletonFor(const KernelRequest &request, std::string_view name);

/// Why skeletons that are preferred to `chosen`, and are made for the architecture, do not apply; empty if none was
/// passed over.
std::string whyPassedOver(const KernelRequest &request, const Skeleton &chosen);

/// chooseSkeleton and its default configuration.
Result<KernelConfig> defaultConfig(const KernelRequest &request);

/// The skeleton that the configuration names, after checking that it applies and the
/// configuration is feasible: the one gate for stored or typed-in configurations.
Result<const Skeleton *> validateConfig(const KernelRequest &request, const KernelConfig &config);

} // namespace heddle
