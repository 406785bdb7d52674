// Owns what the operations of `heddle cache` share: the list of them, and how rows look as text and as JSON.
// One operation or a few close ones a file; cache.cpp lists them.
#pragma once

#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/Verb.h"

#include <map>

namespace heddle::cli {

Action addCacheShow(CLI::App &command);
Action addCacheMerge(CLI::App &command);
Action addCacheImport(CLI::App &command);
Action addCacheExport(CLI::App &command);
Action addCacheDiff(CLI::App &command);

inline Json valueJson(const std::string &value) { return value; }
inline Json valueJson(int64_t value) { return value; }
inline Json valueJson(double value) { return value; }
inline Json valueJson(DType value) { return dtypeName(value); }

/// The fields of a row, in the order of its list.
template <class T> Json rowJson(const T &row) {
  Json json;
  T::fields([&](const char *name, auto member) { json[name] = valueJson(row.*member); });
  return json;
}

/// The digest that names a winner: what `show` takes, and its first letters what `ls` prints.
std::string winnerId(const Winner &winner);
/// The row behind its id.
Json winnerJson(const Winner &winner);
/// The row without its code, whose sizes are given instead.
Json kernelJson(KernelRecord record, int64_t cubinBytes, int64_t ptxBytes);
Json countsJson(const StoreCounts &counts);
std::string countsText(const StoreCounts &counts);

/// With blanks up to `width` letters (of ASCII), and two more.
std::string padded(std::string text, size_t width);
/// "12.5 us".
std::string microseconds(double us);
/// With a blank for each newline.
std::string inOneLine(std::string text);
/// The time of a winner, or "untuned".
std::string timeText(const Winner &winner);
/// The time of a trial, or why it has none.
std::string outcomeText(const Trial &trial);
/// "0.6.0": the version of the code generator, without the name of the program.
std::string generatorText(const std::string &generator);
/// How rows spell such a number; what begins with no digit is left as it is.
std::string storedGenerator(const std::string &given);
inline constexpr const char *kGeneratorNumber = "a code generator, by the number that `heddle cache show` prints";
/// What patterns are called in a database, else the start of their digest.
class PatternLabels {
public:
  explicit PatternLabels(const std::vector<NameRecord> &names);
  std::string of(const std::string &digest) const;

private:
  std::map<std::string, std::string> nameOf; ///< by digest, the first one
};

/// What a winner is for, in columns: pattern, kind, dtype, dims, problem, device.
std::string keyText(const WinnerKey &key, const PatternLabels &labels);
/// "2026-11-22 00:31:07 UTC".
std::string dateText(int64_t unixSeconds);

/// The fields of a configuration as it is stored for kernels (a line each) or trials (one line), by name.
std::map<std::string, std::string> configFields(const std::string &config);
/// "block_m=128 -> 64, grid=stride -> dynamic": what `to` says otherwise than `from`, of the fields that both have, by
/// the names of values or by numbers.
std::string configChanges(const std::string &from, const std::string &to);

} // namespace heddle::cli
