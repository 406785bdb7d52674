#pragma once

#include <string>
#include <vector>

namespace heddle {

/// The candidate with the fewest edits from `word`, if about a third of its letters differ at most, and not all;
/// otherwise "". Ties go to the earlier candidate.
std::string nearest(const std::string &word, const std::vector<std::string> &candidates);

/// ", did you mean 'compile'?" or "".
std::string didYouMean(const std::string &word, const std::vector<std::string> &candidates);

} // namespace heddle
