//===- Output.h - artefacts to files and stdout -----------------*- C++ -*-===//
// Owns where bytes go: a file appears whole or not at all, and binary never reaches a terminal.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_TOOLS_OUTPUT_H
#define HEDDLE_COMPILER_TOOLS_OUTPUT_H

#include "compiler/Driver/StageTimes.h"
#include "runtime/Core/Status.h"

#include <nlohmann/json.hpp>

#include <string>

namespace heddle::cli {

/// Keys keep the order in which they were written.
using Json = nlohmann::ordered_json;

/// Prints an object with two blanks per level and a newline. Bytes that are no UTF-8 are replaced.
void printJson(const Json &value);

bool stdoutIsTerminal();

/// Writes to `path`, or to stdout for "-". io if it cannot be written; the file is then as it was.
Status writeArtifact(const std::string &path, const std::string &bytes);

/// {"parse": 0.4, ..., "total": 12.3} in milliseconds.
Json timesJson(const StageTimes &times);
/// A table on stderr.
void printTimes(const std::string &title, const StageTimes &times);

} // namespace heddle::cli

#endif
