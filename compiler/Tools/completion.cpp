// Scripts by which shells complete verbs, options, their values and the names of patterns. A script asks the program
// what may stand where the cursor is: the first line of the answer is FILES if a file may, every other one a word and,
// behind a tab, what it means.
#include "compiler/Pattern/PatternSource.h"
#include "compiler/Tools/CommandTree.h"
#include "compiler/Tools/OptionWords.h"
#include "compiler/Tools/Verb.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {
namespace {

constexpr const char *kBash = R"(# bash completion of heddle; made by 'heddle completion bash'.
_heddle() {
  local current=${COMP_WORDS[COMP_CWORD]} IFS=$'\n'
  local -a before=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
  if [ "$current" = = ]; then
    current=
  elif [ "${COMP_WORDS[COMP_CWORD-1]}" = = ]; then
    unset "before[COMP_CWORD-2]"
  fi
  local offered=$(heddle completion bash -- "${before[@]}" "$current" 2>/dev/null | cut -f1)
  COMPREPLY=($(compgen -W "${offered#FILES}" -- "$current"))
  case $offered in
    FILES*) COMPREPLY+=($(compgen -f -- "$current")) ;;
  esac
}
complete -o filenames -F _heddle heddle
)";

constexpr const char *kZsh = R"(#compdef heddle
# Made by 'heddle completion zsh'.
_heddle() {
  local current=${words[CURRENT]}
  local -a before offered
  before=("${(@)words[2,CURRENT-1]}")
  if [[ $current == --*=* ]]; then
    before+=("${current%%=*}")
    compset -P '*='
    current=$PREFIX
  fi
  offered=("${(@f)$(heddle completion zsh -- "${before[@]}" "$current" 2>/dev/null | cut -f1)}")
  if [[ $offered[1] == FILES ]]; then
    shift offered
    _files
  fi
  compadd -- $offered
}
if [ "$funcstack[1]" = _heddle ]; then _heddle "$@"; else compdef _heddle heddle; fi
)";

constexpr const char *kFish = R"(# fish completion of heddle; made by 'heddle completion fish'.
function __heddle_offer
  set -l offered (heddle completion fish -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
  if test "$offered[1]" = FILES
    set -e offered[1]
    __fish_complete_path (commandline -ct)
  end
  printf '%s\n' $offered
end
complete -c heddle -f -a '(__heddle_offer)'
)";

/// What is typed: the command that the words lead to, and the option that waits for its value, if one does.
struct Place {
  const CommandNode *command;
  const OptionNode *option = nullptr;

  Place(const std::vector<CommandNode> &nodes, const std::vector<std::string> &words) : command(&nodes.front()) {
    for (const std::string &word : words) {
      const std::string path = command->path + " " + word;
      const auto below =
          std::find_if(nodes.begin(), nodes.end(), [&](const CommandNode &node) { return node.path == path; });
      if (below != nodes.end())
        command = &*below;
      option = optionCalled(word);
    }
  }
  /// Null if it takes no value.
  const OptionNode *optionCalled(const std::string &name) const {
    for (const OptionNode &known : command->options)
      if (known.kind != ValueKind::none && std::find(known.names.begin(), known.names.end(), name) != known.names.end())
        return &known;
    return nullptr;
  }
};

void offer(const OptionNode &node, const std::string &prefix) {
  if (node.kind == ValueKind::file || node.kind == ValueKind::pattern)
    std::cout << "FILES\n";
  for (const std::string &word : node.kind == ValueKind::pattern ? libraryPatternNames() : node.choices)
    std::cout << prefix << word << '\n';
}

void offerBelow(const std::vector<CommandNode> &nodes, const CommandNode &command) {
  for (const CommandNode &node : nodes)
    for (const std::string &sub : command.subcommands)
      if (node.path == command.path + " " + sub)
        std::cout << sub << '\t' << node.summary << '\n';
}

/// Behind `help` stand its topics and the words that lead to a verb or an operation; `words` are those typed there.
int offerHelp(const std::vector<CommandNode> &nodes, const CommandNode &help, const std::vector<std::string> &words) {
  offerBelow(nodes, *Place(nodes, words).command);
  if (words.empty())
    offer(help.words.front(), "");
  return Ok;
}

/// `words` end with the one under the cursor.
int offer(const std::vector<CommandNode> &nodes, std::vector<std::string> words) {
  const std::string current = words.back();
  words.pop_back();
  const Place place(nodes, words);
  if (const auto help = std::find(words.begin(), words.end(), "help");
      current[0] != '-' && place.command->path == nodes.front().path + " help")
    return offerHelp(nodes, *place.command, {help + 1, words.end()});
  const size_t value = current.find('=') + 1; // 0: none
  if (const OptionNode *option = value ? place.optionCalled(current.substr(0, value - 1)) : place.option)
    offer(*option, current.substr(0, value));
  else if (current[0] == '-')
    for (const OptionNode &known : place.command->options)
      for (const std::string &name : known.names)
        std::cout << name << '\t' << known.help << '\n';
  else if (!place.command->subcommands.empty())
    offerBelow(nodes, *place.command);
  else if (!place.command->words.empty())
    offer(place.command->words.front(), "");
  return Ok;
}

} // namespace

Action addCompletion(CLI::App &command) {
  auto shell = std::make_shared<std::string>();
  auto words = std::make_shared<std::vector<std::string>>();
  command.add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(oneOf("shell", {"bash", "zsh", "fish"}));
  command.add_option("WORDS", *words, "What is typed, for the scripts")->group("");
  return [shell, words, &command] {
    if (!words->empty())
      return offer(commandTree(rootOf(command)), *words);
    std::cout << (*shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish);
    return int(Ok);
  };
}

} // namespace heddle::cli
