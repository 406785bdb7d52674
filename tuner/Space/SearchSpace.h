// The search space as data: knobs with finitely many values, a judge that refuses by named constraints and gives
// reasons, and points (one value index per knob).
//
// Nothing here knows what a knob means. The text form ("block_m=128 stages=2") is the stable name
// of a point: it is what trials are recorded under, so it never contains a value index, and
// adding a value to a knob does not rename any older point. Change it with
// tests/unit/search_space_test.cpp and tests/data/tuner.
#pragma once

#include "runtime/Core/Status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::tuner {

// One value of a knob: a number, and a name if the knob is spelled by names.
struct KnobValue {
  int64_t value = 0;
  std::string name; // empty for a plain number
};

// One dimension of a search space.
struct Knob {
  std::string name;
  std::string help;
  std::vector<KnobValue> values;
  std::optional<int64_t> initial = {}; // the value that a text without the knob means; none: it must be given

  // The place of `initial` among the values.
  std::optional<uint32_t> initialIndex() const;
  // How the value at `index` is written in text forms.
  std::string spelling(size_t index) const;
};

// A place in a search space: for each knob the index of its value, in the order of the knobs.
// Only meaningful together with the space that it came from.
struct Point {
  std::vector<uint32_t> index;

  friend bool operator==(const Point &a, const Point &b) { return a.index == b.index; }
  friend bool operator!=(const Point &a, const Point &b) { return !(a == b); }
  friend bool operator<(const Point &a, const Point &b) { return a.index < b.index; }
};

// Which rule refuses a point, and why.
struct Refusal {
  std::string constraint;
  std::string reason;
};

// All rules in one call: nothing for a feasible point, else the first rule that refuses it.
using Judge = std::function<std::optional<Refusal>(const Point &)>;
// The same without the reason, for walks over millions of points: the name of the rule, null for a feasible point.
using Screen = std::function<const std::string *(const Point &)>;

// The feasible points, and for every constraint how many points it was the first to refuse.
struct Enumeration {
  std::vector<Point> points; // lexicographic in the order of knobs and values
  uint64_t examined = 0;
  std::vector<std::pair<std::string, uint64_t>> refused; // in the order of the constraint names
};

// Immutable after construction; const members may be called from any number of threads as
// long as the judge may.
class SearchSpace {
public:
  // Larger spaces are refused by enumerate(): they call for a search that need not see every point.
  static constexpr uint64_t kMaxExamined = uint64_t(1) << 26;

  // Refused (invalid argument): no knobs, a knob without values or with a repeated value, a
  // repeated or malformed knob name (letters, digits and '_' only), no judge. The names are those that its refusals
  // carry, in the order of a report. A screen, if there is one, refuses what the judge refuses, by the same names.
  static Result<SearchSpace> create(std::string name, std::vector<Knob> knobs, Judge judge,
                                    std::vector<std::string> constraintNames, Screen screen = nullptr);

  const std::string &name() const { return spaceName; }
  const std::vector<Knob> &knobs() const { return knobList; }
  const std::vector<std::string> &constraintNames() const { return constraintNameList; }

  // Number of points before any constraint, saturated at UINT64_MAX.
  uint64_t rawSize() const;
  std::optional<size_t> knobIndex(std::string_view knob) const;

  // True if the point has one existing value for every knob.
  bool contains(const Point &point) const;
  // "<constraint>: <reason>" of the first constraint that refuses the point; nothing if feasible.
  std::optional<std::string> whyInfeasible(const Point &point) const;
  // Walks the whole space and keeps what every constraint accepts.
  Result<Enumeration> enumerate() const;

  // "knob=value knob=value ...", in the order of the knobs.
  std::string text(const Point &point) const;
  // The inverse of text(); the order of the assignments does not matter. Refused: an unknown
  // knob or value, a knob given twice, or not at all and without a value for that.
  Result<Point> parse(std::string_view text) const;
  // Digest of the text form with the knobs sorted by name, but for those at their initial value: the same on every
  // machine, whatever the order of the knobs, and when a knob is added.
  std::string digest(const Point &point) const;

private:
  SearchSpace() = default;

  Status assign(std::string_view assignment, Point &point, std::vector<bool> &isGiven) const;

  std::string spaceName;
  std::vector<Knob> knobList;
  Judge judge;
  Screen screen;
  std::vector<std::string> constraintNameList;
};

} // namespace heddle::tuner
