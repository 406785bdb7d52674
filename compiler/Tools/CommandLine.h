//===- CommandLine.h - heddle <verb> ----------------------------*- C++ -*-===//
#ifndef HEDDLE_COMPILER_TOOLS_COMMANDLINE_H
#define HEDDLE_COMPILER_TOOLS_COMMANDLINE_H

namespace heddle::cli {

/// Runs what the arguments of main say, and ends the process with its exit code.
[[noreturn]] void runCommandLine(int argc, char **argv);

} // namespace heddle::cli

#endif
