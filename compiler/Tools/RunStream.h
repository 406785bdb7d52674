// Owns the options of calls whose sequence fits into no memory, and what such a call says: what its plan expects beside what
// was measured.
#pragma once

#include "compiler/Io/AttentionInputs.h"
#include "compiler/Tools/Options.h"

#include <optional>

namespace heddle::cli {

struct StreamOptions {
  bool isOn = false;
  int64_t pieceRows = 0, firstRow = 0;
  std::optional<int64_t> seqlen; ///< with it inputs are made
  AttentionSizes sizes;
  int64_t kvHeads = 0, valueDim = 0;
  std::string dtype = dtypeName(kDefaultDType);
  uint64_t seed = 0;

  void add(CLI::App &command);
  /// Usage errors: the options are of streamed calls, or inputs are given twice or never.
  Status check(const CLI::App &command, const std::string &inputs) const;
};

struct StreamedRun {
  const PatternFile &file;
  const StreamOptions &stream;
  const SizeOptions &sizes;
  const DatabaseOptions &database;
  std::string inputs, output, target, config;
  std::optional<double> scale;
  int64_t checkedRows = 0; ///< 0: none
  bool json = false, makesOperands = false;
};

/// The exit code, with everything said.
int runStreamed(const StreamedRun &run);

} // namespace heddle::cli
