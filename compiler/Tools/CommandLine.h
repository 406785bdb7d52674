//===- CommandLine.h - heddle <verb> ----------------------------*- C++ -*-===//
#pragma once

namespace heddle::cli {

/// Runs what the arguments of main say, and ends the process with its exit code.
[[noreturn]] void runCommandLine(int argc, char **argv);

} // namespace heddle::cli
