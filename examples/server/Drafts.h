//===- Drafts.h - guesses of what comes next, and the choice of it ----------===//
#pragma once

#include <cstdint>
#include <string>

namespace server {

// At most `most` bytes that followed the last ones of the text where these occurred before; the longest of the last 16 to
// 3 bytes that did counts, and its last occurrence. "": none.
std::string draftOf(const std::string &text, int64_t most);

// The next byte, of logits of 256: the most likely one where temperature is 0, else by chance that depends on the seed and
// the position alone. So a guess is right or wrong whatever else is computed, and changes no byte.
uint8_t choose(const float *logits, double temperature, uint64_t seed, int64_t position);

} // namespace server
