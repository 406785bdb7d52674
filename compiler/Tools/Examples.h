//===- Examples.h - what people type ----------------------------*- C++ -*-===//
#ifndef HEDDLE_COMPILER_TOOLS_EXAMPLES_H
#define HEDDLE_COMPILER_TOOLS_EXAMPLES_H

#include <string>
#include <vector>

namespace heddle::cli {

struct Example {
  std::string command; ///< the command that it is of and more: "heddle cache ls --trials"
  std::string comment;
};

/// Of the command "heddle cache ls", in the order in which its help prints them.
std::vector<Example> examplesOf(const std::string &path);

/// For the end of the command's help.
std::string exampleText(const std::string &path);

/// The variables that are read, a line each, for 'heddle help environment' and the manual page.
struct Variable {
  const char *name, *meaning;
};
const std::vector<Variable> &environment();

} // namespace heddle::cli

#endif
