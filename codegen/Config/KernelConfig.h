// The fields of a family of kernels, which the family's skeleton owns, and a value for each. Text, JSON, coordinates
// and parsing work from the list. Names and numbers of a field never change meaning, and a text that lacks a field
// means the field's default: stored records refer to both. So a new field begins with what kernels did before it.
#pragma once

#include "runtime/Core/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle {

struct KernelRequest;

struct ConfigField {
  std::string name;
  int64_t initial;     ///< what a text without the field means
  int64_t least, most; ///< what other rules compute with: text may hold any number
  /// The names of the values from 0 on, where these are alternatives rather than numbers; "" is a value without one.
  std::vector<std::string> names = {};

  /// The value's name, else the number.
  std::string spelled(int64_t value) const;
  /// The value of what spelled() gives, or of a number.
  std::optional<int64_t> read(std::string_view text) const;
};

/// Products of three fields up to this stay far from an overflow.
inline constexpr int64_t kLargestField = 1 << 16;

/// Those of one family, in the order of texts.
struct ConfigFields {
  std::string skeleton; ///< Skeleton::name()
  std::vector<ConfigField> list;

  /// notFound with the names that exist.
  Result<size_t> find(std::string_view field) const;
};

/// The fields must outlive it.
class KernelConfig {
public:
  /// A configuration of no family.
  KernelConfig();
  /// Every field at its default.
  explicit KernelConfig(const ConfigFields &fields);

  const std::string &skeleton() const { return family->skeleton; }
  const ConfigFields &fields() const { return *family; }

  /// Canonical text, "name=value" per line in list order; what records hold.
  std::string str() const;
  /// {"skeleton":"...","block_m":128,...} without blanks.
  std::string json() const;
  /// "block_m=128 block_n=64 ..." in one line, numbers only; for messages.
  std::string summary() const;
  /// Likewise, values by their names where they have some; for people.
  std::string spelled() const;

  /// The inverse of str(): every field at most once, in any order, others at their defaults. Otherwise invalidArgument
  /// naming the line, with the fields that exist. readConfig (Skeleton.h) finds the family.
  static Result<KernelConfig> parse(const ConfigFields &fields, std::string_view text);

  /// The numeric fields in list order: coordinates for a search.
  std::vector<std::pair<std::string, int64_t>> coordinates() const;
  /// Sets a numeric field by its name in the list. Unknown: notFound with the names that exist.
  Status set(std::string_view field, int64_t value);
  /// The value of a numeric field. Unknown: notFound with the names that exist.
  Result<int64_t> get(std::string_view field) const;
  /// 0 where the family has no such field.
  int64_t valueOf(std::string_view field) const;
  /// By the place in the list.
  int64_t &operator[](size_t place) { return values[place]; }
  int64_t operator[](size_t place) const { return values[place]; }

  bool operator==(const KernelConfig &other) const { return family == other.family && values == other.values; }
  bool operator!=(const KernelConfig &other) const { return !(*this == other); }

private:
  const ConfigFields *family;
  std::vector<int64_t> values; // of the list
};

/// The rule that every skeleton puts first: the first field outside its range, "stages is 9, expected 1 to 4".
std::optional<std::string> checkRanges(const KernelRequest &, const KernelConfig &config);

/// Spelling of a field as a device constant: "block_m" is "kBlockM".
std::string deviceConstantName(std::string_view field);

} // namespace heddle
