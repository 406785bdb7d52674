// Owns sets that are made of given ones, the variables, by and, or and not: as reduced ordered decision diagrams, so
// that two sets which the laws of sets make equal are the same number, and their covers by products of variables.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace heddle::attn {

/// The meet of some variables and of complements of others.
struct Cube {
  uint64_t positive = 0, negative = 0; ///< bit v: variable v
  bool operator==(const Cube &other) const { return positive == other.positive && negative == other.negative; }
};

class SetFunctions {
public:
  using Set = uint32_t;
  static constexpr Set kNone = 0, kAll = 1;
  static constexpr unsigned kMaxVariables = 64;

  SetFunctions();

  Set variable(unsigned v) { return node(v, kNone, kAll); }
  Set both(Set a, Set b) { return choose(a, b, kNone); }
  Set either(Set a, Set b) { return choose(a, kAll, b); }
  Set complement(Set a) { return choose(a, kNone, kAll); }
  /// What `a` holds for one of the two values of the variable.
  Set without(Set a, unsigned v);

  /// Products whose union holds all of `lower` and nothing beyond `upper`, none of which can go or be widened. They
  /// depend on the two sets and the order of variables only. None: there would be too many.
  std::optional<std::vector<Cube>> cover(Set lower, Set upper);

  /// The diagrams passed a limit: results have no meaning.
  bool isTooLarge() const { return tooLarge; }

private:
  struct Node {
    unsigned variable;
    Set low, high;
  };
  struct Cover {
    std::vector<Cube> cubes;
    Set set = kNone;
  };

  Set node(unsigned v, Set low, Set high);
  Set choose(Set condition, Set then, Set otherwise);
  unsigned topOf(Set a) const { return nodes[a].variable; }
  Set at(Set a, unsigned v, bool value) const;
  Cover coverOf(Set lower, Set upper);

  std::vector<Node> nodes;
  std::map<std::tuple<unsigned, Set, Set>, Set> known;
  std::map<std::tuple<Set, Set, Set>, Set> chosen;
  std::map<std::pair<Set, Set>, Cover> covers;
  std::map<std::pair<Set, unsigned>, Set> projected;
  bool tooLarge = false, manyCubes = false;
};

} // namespace heddle::attn
