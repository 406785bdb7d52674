// The vocabulary of feasibility. One list of constraints per skeleton serves everything: the search
// that enumerates, the validation of a stored configuration, and `explain`, which prints reasons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

class KernelConfig;
struct KernelRequest;

/// One dimension of the search: a field of the family and the values worth trying.
struct Knob {
  std::string name;            ///< the field
  std::string help;            ///< what it trades, with units
  std::vector<int64_t> values; ///< ascending
  size_t group = 0;            ///< a constraint reads knobs of one group only, fields that follow included
};

/// A rule. `reason` gives nothing for a feasible pair, else the numbers that decide ("need
/// 245760 B, ... allows 232448 B"). It must hold for any numbers in the configuration, since stored text
/// may hold any.
struct Constraint {
  std::string_view name;
  std::string_view help;
  std::optional<std::string> (*reason)(const KernelRequest &, const KernelConfig &);
};

/// Why a configuration is infeasible.
struct Rejection {
  std::string constraint;
  std::string reason;
  std::string config; ///< KernelConfig::summary()

  /// "smem: need 245760 B, ... allows 232448 B (block_m=192 block_n=160 stages=3 ...)"
  std::string str() const { return constraint + ": " + reason + " (" + config + ")"; }
};

} // namespace heddle
