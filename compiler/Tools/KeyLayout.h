// Owns --keys and --page-size of verbs that make calls of kind decode.
#pragma once

#include "compiler/Io/AttentionInputs.h"

namespace CLI {
class App;
}

namespace heddle::cli {

/// In pages of one table for all kv heads, of a list for each of them, in ragged rows, or in pages of tables behind each
/// other.
enum class KeyPlaces : uint8_t { pages, lists, rows, indices };
const char *keyPlacesName(KeyPlaces places);

struct KeyLayout {
  KeyPlaces places = KeyPlaces::pages;
  int64_t pageSize = 64;

  void add(CLI::App &command);
  /// Sizes with room for sizes.seqlenK keys of each sequence, each page once.
  AttentionSizes sizesWith(AttentionSizes sizes) const;
  /// Optional roles of such calls (RandomInputs).
  std::vector<Role> roles() const;
};

} // namespace heddle::cli
