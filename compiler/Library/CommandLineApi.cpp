//===- CommandLineApi.cpp - the command line of the C interface -----------===//
#include "compiler/Library/heddle_compiler.h"
#include "compiler/Tools/CommandLine.h"

extern "C" void heddle_command_line(int argc, char **argv) { heddle::cli::runCommandLine(argc, argv); }
