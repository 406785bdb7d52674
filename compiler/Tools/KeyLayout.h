// Owns --lengths, --keys and --page-size of verbs that make calls of kind decode.
#pragma once

#include "compiler/Io/ServedKeys.h"

namespace CLI {
class App;
}

namespace heddle::cli {

/// --keys and --page-size.
void addKeyLayout(CLI::App &command, KeyLayout &layout);

/// With --lengths, of verbs that measure calls of sequences.
struct PagesOptions {
  std::vector<std::string> lengths;
  KeyLayout layout = {};
  /// `several`: any number of ranges.
  void add(CLI::App &command, bool several);
  bool isGiven() const { return !lengths.empty(); }
  /// What passed the checks of add().
  std::vector<ServedKeys> keys() const;
  /// invalidArgument: the kind has sequences and no lengths were given, or --seqlen-k was; or it has none, and they were.
  Status check(const Kind &kind, int64_t seqlenK) const;
  /// The only ones, none of a kind without sequences; fails as check().
  Result<ServedKeys> keysOf(const Kind &kind, int64_t seqlenK) const;
};

} // namespace heddle::cli
