//===- Drafts.cpp - guesses of what comes next, and the choice of it --------===//
#include "Drafts.h"

#include <algorithm>
#include <cmath>

namespace server {
namespace {

constexpr int64_t kChoices = 256;

uint64_t mixed(uint64_t value) { // splitmix64
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

// So many bytes from `begin` on; the draft itself goes on where the text ends, so that what repeats is repeated.
std::string behind(const std::string &text, size_t begin, size_t count) {
  std::string draft;
  for (size_t i = begin; draft.size() < count; ++i)
    draft += i < text.size() ? text[i] : draft[i - text.size()];
  return draft;
}

} // namespace

std::string draftOf(const std::string &text, int64_t most) {
  if (most <= 0)
    return "";
  for (size_t count = 16; count >= 3; --count) {
    if (text.size() <= count)
      continue;
    const size_t found = text.rfind(text.data() + text.size() - count, text.size() - count - 1, count);
    if (found != std::string::npos)
      return behind(text, found + count, size_t(most));
  }
  return "";
}

uint8_t choose(const float *logits, double temperature, uint64_t seed, int64_t position) {
  const float *const best = std::max_element(logits, logits + kChoices);
  if (temperature <= 0)
    return uint8_t(best - logits);
  double weights[kChoices], sum = 0;
  for (int64_t i = 0; i < kChoices; ++i)
    sum += weights[i] = std::exp((double(logits[i]) - double(*best)) / temperature);
  double left = double(mixed(mixed(seed) ^ uint64_t(position)) >> 11) * 0x1p-53 * sum;
  for (int64_t i = 0; i < kChoices; ++i)
    if ((left -= weights[i]) < 0)
      return uint8_t(i);
  return uint8_t(best - logits);
}

} // namespace server
