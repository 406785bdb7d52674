// Owns the measurement of calls of kind decode: a batch of random lengths over pages in random order, in turn with a read
// of memory, compared with the definition. Such calls are bound by memory, so what counts are bytes of keys and values.
#pragma once

#include "compiler/Session/ReadRoof.h"
#include "compiler/Tools/BenchLaunch.h"
#include "compiler/Io/ServedKeys.h"
#include "compiler/Tools/Output.h"

#include <optional>

namespace heddle::cli {

struct DecodeRow {
  std::string pattern, match, config;
  Workload workload; ///< seqlenQ: queries of each sequence; seqlenK: what the table has room for
  ServedKeys served;
  int64_t keys = 0, pages = 0; ///< of all sequences or lists; of the cache, which they share where it is small
  double us = 0, readUs = 0;   ///< medians; readUs 0 if there was no read
  int64_t readBytes = 0;
  double keptBytes = 0; ///< of keys and values that the pattern's ranges name, each once for all heads that share it
  int64_t missing = 0;  ///< elements of results that were NaN
  oracle::KindReport verified;

  bool isRight() const { return verified.isOk() && missing == 0; }
  double gigabytesPerSecond() const { return keptBytes / us / 1000; }
  /// None without a read.
  std::optional<double> readGigabytesPerSecond() const;
  std::optional<double> percentOfRead() const;
};

/// The workload's seqlenK is what the table has room for, keys.room().
Result<DecodeRow> measureDecode(const BenchSetup &setup, const ServedKeys &keys, const ReadRoof *read);

void printRow(const DecodeRow &row, bool withHeader);
Json rowsJson(const std::vector<DecodeRow> &rows, const std::string &device);

} // namespace heddle::cli
