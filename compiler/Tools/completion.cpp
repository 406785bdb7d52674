//===- completion.cpp - heddle completion ---------------------------------===//
// Scripts by which shells complete verbs, options, their values and the names of patterns, from the declarations of the
// verbs. bash and zsh share one function, whose tables are written in what both understand.
//===----------------------------------------------------------------------===//
#include "compiler/Pattern/PatternSource.h"
#include "compiler/Tools/CommandTree.h"
#include "compiler/Tools/OptionWords.h"
#include "compiler/Tools/Verb.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {
namespace {

std::string joined(const std::vector<std::string> &words) { return CLI::detail::join(words, " "); }

std::string optionsOf(const CommandNode &command) {
  std::vector<std::string> names;
  for (const OptionNode &option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return joined(names);
}

/// What stands where no option is: operations, patterns or files.
std::string wordsOf(const CommandNode &command) {
  if (!command.subcommands.empty())
    return "offered='" + joined(command.subcommands) + "'";
  if (command.words.empty())
    return "offered=''";
  const OptionNode &word = command.words.front();
  switch (word.kind) {
  case ValueKind::pattern:
    return "offered=\"$library\" files_too=1";
  case ValueKind::choice:
    return "offered='" + joined(word.choices) + "'";
  case ValueKind::file:
    return "files_too=1";
  default:
    return "offered=''";
  }
}

std::string valueOf(const OptionNode &option) {
  switch (option.kind) {
  case ValueKind::pattern:
    return "offered=\"$library\" files_too=1";
  case ValueKind::choice:
    return "offered='" + joined(option.choices) + "'";
  case ValueKind::file:
    return "files_too=1";
  default:
    return "offered=''";
  }
}

/// A line of `case "$command $option"` for every option that takes a value.
void printValues(const CommandNode &command) {
  for (const OptionNode &option : command.options) {
    if (option.kind == ValueKind::none)
      continue;
    std::string names;
    for (const std::string &name : option.names)
      names += (names.empty() ? "" : "|") + ("'" + command.path + " " + name + "'");
    std::cout << "    " << names << ") " << valueOf(option) << "; return ;;\n";
  }
}

/// _heddle_find WORD...: what may come behind these words, in `offered`, `dashed` (options) and `files_too`. No value
/// of an option is taken for a verb, as none is called like one.
void printFinder(const std::vector<CommandNode> &nodes) {
  std::cout << "_heddle_find() {\n"
               "  command=heddle option= offered= files_too=\n"
               "  library='"
            << joined(libraryPatternNames())
            << "'\n"
               "  local word\n"
               "  shift\n"
               "  for word in \"$@\"; do\n"
               "    option=\n"
               "    case \"$command $word\" in\n      ";
  for (size_t i = 1; i < nodes.size(); ++i)
    std::cout << (i > 1 ? "|" : "") << "'" << nodes[i].path << "'";
  std::cout << ") command=\"$command $word\" ;;\n"
               "      *\\ -*) option=$word ;;\n"
               "    esac\n"
               "  done\n"
               "  case \"$command $option\" in\n";
  for (const CommandNode &node : nodes)
    printValues(node);
  std::cout << "  esac\n"
               "  case $command in\n";
  for (const CommandNode &node : nodes)
    std::cout << "    '" << node.path << "') dashed='" << optionsOf(node) << "' " << wordsOf(node) << " ;;\n";
  std::cout << "  esac\n"
               "}\n";
}

constexpr const char *kBash = R"(_heddle() {
  local command option offered files_too dashed library current=${COMP_WORDS[COMP_CWORD]}
  local -a before=("${COMP_WORDS[@]:0:COMP_CWORD}")
  if [ "$current" = = ]; then
    current=
  elif [ "${before[${#before[@]}-1]}" = = ]; then
    unset "before[${#before[@]}-1]"
  fi
  _heddle_find "${before[@]}"
  case $current in
    -*) offered=$dashed files_too= ;;
  esac
  COMPREPLY=()
  [ -z "$offered" ] || COMPREPLY=($(compgen -W "$offered" -- "$current"))
  [ -z "$files_too" ] || COMPREPLY+=($(compgen -f -- "$current"))
}
complete -o filenames -F _heddle heddle
)";

constexpr const char *kZsh = R"(_heddle() {
  local command option offered files_too dashed library current=${words[CURRENT]}
  local -a before
  before=("${(@)words[1,CURRENT-1]}")
  if [[ $current == --*=* ]]; then
    before+=("${current%%=*}")
    compset -P '*='
    current=$PREFIX
  fi
  _heddle_find "${before[@]}"
  case $current in
    -*) offered=$dashed files_too= ;;
  esac
  [[ -z $offered ]] || compadd -- ${=offered}
  [[ -z $files_too ]] || _files
}
if [ "$funcstack[1]" = _heddle ]; then _heddle "$@"; else compdef _heddle heddle; fi
)";

int printBash(const std::vector<CommandNode> &nodes) {
  std::cout << "# bash completion of heddle; made by 'heddle completion bash'.\n";
  printFinder(nodes);
  std::cout << kBash;
  return Ok;
}

int printZsh(const std::vector<CommandNode> &nodes) {
  std::cout << "#compdef heddle\n# Made by 'heddle completion zsh'.\n";
  printFinder(nodes);
  std::cout << kZsh;
  return Ok;
}

/// In single quotes of fish.
std::string fishText(const std::string &text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "'";
}

std::string fishWords(ValueKind kind, const std::vector<std::string> &choices) {
  switch (kind) {
  case ValueKind::pattern:
    return " -F -a " + fishText(joined(libraryPatternNames()));
  case ValueKind::choice:
    return " -f -a " + fishText(joined(choices));
  case ValueKind::file:
    return " -F";
  default:
    return " -f";
  }
}

void printFish(const CommandNode &command, const std::vector<CommandNode> &nodes) {
  const std::string begin = "complete -c heddle -n " + fishText("__heddle_is '" + command.path + "'");
  for (const CommandNode &node : nodes)
    for (const std::string &sub : command.subcommands)
      if (node.path == command.path + " " + sub)
        std::cout << begin << " -f -a " << sub << " -d " << fishText(node.summary) << '\n';
  if (!command.words.empty())
    std::cout << begin << fishWords(command.words.front().kind, command.words.front().choices) << '\n';
  for (const OptionNode &option : command.options) {
    std::cout << begin;
    for (const std::string &name : option.names)
      std::cout << (name[1] == '-' ? " -l " + name.substr(2) : " -s " + name.substr(1));
    if (option.kind != ValueKind::none)
      std::cout << " -r" << fishWords(option.kind, option.choices);
    std::cout << " -d " << fishText(option.help) << '\n';
  }
}

int printFishScript(const std::vector<CommandNode> &nodes) {
  std::cout << "# fish completion of heddle; made by 'heddle completion fish'.\n"
               "function __heddle_is\n"
               "  set -l command heddle\n"
               "  for word in (commandline -opc)[2..-1]\n"
               "    switch \"$command $word\"\n"
               "      case";
  for (size_t i = 1; i < nodes.size(); ++i)
    std::cout << " '" << nodes[i].path << "'";
  std::cout << "\n        set command \"$command $word\"\n"
               "    end\n"
               "  end\n"
               "  test \"$command\" = $argv[1]\n"
               "end\n"
               "complete -c heddle -f\n";
  for (const CommandNode &node : nodes)
    printFish(node, nodes);
  return Ok;
}

} // namespace

Action addCompletion(CLI::App &command) {
  auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(oneOf("shell", {"bash", "zsh", "fish"}));
  return [shell, &command] {
    const std::vector<CommandNode> nodes = commandTree(rootOf(command));
    return *shell == "bash" ? printBash(nodes) : *shell == "zsh" ? printZsh(nodes) : printFishScript(nodes);
  };
}

} // namespace heddle::cli
