// Owns the keys of a batch of sequences as measurements of serving have them: how they lie in memory, how many there are
// of each sequence, and tensors of such a call. Lengths, and the order of pages, are random.
#pragma once

#include "compiler/Io/AttentionInputs.h"

namespace heddle {

/// In pages of one table for all kv heads, of a list for each of them, in ragged rows, or in pages of tables behind each
/// other.
enum class KeyPlaces : uint8_t { pages, lists, rows, indices };
const char *keyPlacesName(KeyPlaces places);
std::vector<KeyPlaces> allKeyPlaces();

struct KeyLayout {
  KeyPlaces places = KeyPlaces::pages;
  int64_t pageSize = 64;

  /// Sizes with room for sizes.seqlenK keys of each sequence, each page once.
  AttentionSizes sizesWith(AttentionSizes sizes) const;
  /// Optional roles of such calls (RandomInputs).
  std::vector<Role> roles() const;
};

/// Keys of the sequences of a batch, each number as likely as any other.
struct LengthRange {
  int64_t least = 0, most = 0;
  /// Of "4096" or "512-32k"; none: neither, or keys beyond 2^30.
  static std::optional<LengthRange> parse(const std::string &text);
  std::string text() const; ///< "4096" or "512-32768"
};

struct ServedKeys {
  KeyLayout layout = {};
  LengthRange lengths = {}; ///< 0 at most: no sequences

  bool isGiven() const { return lengths.most > 0; }
  /// What a table has room for: whole pages that hold the longest sequence.
  int64_t room() const;
  std::string text() const; ///< "512-32768 keys, pages of 16"
  std::string key() const;  ///< "keys:512-32768 pages:16", as winners are filed under it
};

/// A call, and how many keys each of its sequences, or lists, has.
struct ServedBatch {
  AttentionInputs inputs;
  std::vector<int64_t> lengths;
  int64_t keys() const;
};

/// Of elements.q, and elements.k where that is another type; sizes.seqlenK is keys.room(). Pages are each sequence's own
/// as far as 2 GiB of keys and values go; beyond it sequences share them. invalidArgument: keys in rows have more.
Result<ServedBatch> randomServedBatch(const AttentionSizes &sizes, const ServedKeys &keys, const CallElements &elements,
                                      const Kind &kind, uint64_t seed);

/// Bytes of a key and its value, of all kv heads.
int64_t bytesOfKey(const AttentionSizes &sizes, const CallElements &elements);

} // namespace heddle
