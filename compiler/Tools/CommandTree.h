// Owns the walk over the declarations of all verbs, from which help, completion and the manual page are made.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace heddle::cli {

/// What may follow an option or stand as a word, for completion.
enum class ValueKind { none, text, file, pattern, choice };

struct OptionNode {
  std::vector<std::string> names; ///< "-o", "--output", as typed; empty for a word that has its place
  std::string value;              ///< "FILE"; "" for a flag
  std::string help;
  ValueKind kind = ValueKind::none;
  std::vector<std::string> choices; ///< of ValueKind::choice
};

struct CommandNode {
  std::string path; ///< "heddle cache ls"
  std::string summary;
  std::vector<OptionNode> options;
  std::vector<OptionNode> words; ///< those that have their place, by their names in `value`
  std::vector<std::string> subcommands;
};

/// `root` and everything below it that help lists, in its order, a command before those below it.
std::vector<CommandNode> commandTree(const CLI::App &root);

/// The commands directly below that help lists.
std::vector<const CLI::App *> visibleCommands(const CLI::App &command);
/// The command that `command` is below of, at last.
const CLI::App &rootOf(const CLI::App &command);

struct Example {
  std::string command; ///< the command that it is of and more: "heddle cache ls --trials"
  std::string comment;
};

/// Those of a command such as "heddle cache ls", in the order in which its help prints them.
std::vector<Example> examplesOf(const std::string &path);

/// For the end of the command's help.
std::string exampleText(const std::string &path);

/// The variables that are read, a line each, for 'heddle help environment' and the manual page.
struct Variable {
  const char *name, *meaning;
};
const std::vector<Variable> &environment();

} // namespace heddle::cli
