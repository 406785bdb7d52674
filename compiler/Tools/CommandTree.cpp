#include "compiler/Tools/CommandTree.h"
#include "compiler/Tools/Options.h"

#include <CLI/CLI.hpp>

namespace heddle::cli {

std::vector<const CLI::App *> visibleCommands(const CLI::App &command) {
  return command.get_subcommands([](const CLI::App *sub) { return !sub->get_group().empty(); });
}

const CLI::App &rootOf(const CLI::App &command) {
  const CLI::App *root = &command;
  while (root->get_parent())
    root = root->get_parent();
  return *root;
}

/// "TYPE" of "TYPE:{bf16,fp16}" and of "INT:INT in [1 - 5]".
static std::string valueOf(const CLI::Option &option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

static bool isFileType(const std::string &type) {
  for (const char *part : {"FILE", "safetensors", "FOLDER", "DIR", "DB", "TABLE"})
    if (type.find(part) != std::string::npos)
      return true;
  return false;
}

static ValueKind kindOf(const OptionNode &option, bool isWord, const std::string &name) {
  if (option.value == kPatternType)
    return ValueKind::pattern;
  if (!option.choices.empty())
    return ValueKind::choice;
  return isFileType(option.value) || (isWord && name != "KEY" && name != "WORD") ? ValueKind::file : ValueKind::text;
}

static OptionNode nodeOf(const CLI::Option &option) {
  OptionNode node;
  for (const std::string &name : option.get_snames())
    node.names.push_back("-" + name);
  for (const std::string &name : option.get_lnames())
    node.names.push_back("--" + name);
  node.help = option.get_description();
  if (option.get_items_expected_max() == 0)
    return node; // a flag
  const bool isWord = node.names.empty();
  node.value = valueOf(option);
  node.choices = choicesOf(option);
  node.kind = kindOf(node, isWord, option.get_single_name());
  if (isWord)
    node.value = option.get_single_name();
  return node;
}

static void add(const CLI::App &command, const std::string &path, std::vector<CommandNode> &nodes) {
  CommandNode node{path, command.get_description(), {}, {}, {}};
  for (const CLI::Option *option : command.get_options())
    if (!option->get_group().empty())
      (option->nonpositional() ? node.options : node.words).push_back(nodeOf(*option));
  const std::vector<const CLI::App *> below = visibleCommands(command);
  for (const CLI::App *sub : below)
    node.subcommands.push_back(sub->get_name());
  nodes.push_back(std::move(node));
  for (const CLI::App *sub : below)
    add(*sub, path + " " + sub->get_name(), nodes);
}

std::vector<CommandNode> commandTree(const CLI::App &root) {
  std::vector<CommandNode> nodes;
  add(root, root.get_name(), nodes);
  return nodes;
}

} // namespace heddle::cli
