// Verbs with subcommands.
#include "compiler/Tools/Verb.h"

#include <CLI/CLI.hpp>

namespace heddle::cli {

Action addOperations(CLI::App &command, const std::vector<Verb> &operations) {
  command.require_subcommand(1);
  std::vector<std::pair<CLI::App *, Action>> added;
  for (const Verb &operation : operations) {
    CLI::App *sub = command.add_subcommand(operation.name, operation.summary);
    added.emplace_back(sub, operation.add(*sub));
  }
  return [added] {
    for (const auto &[sub, action] : added)
      if (sub->parsed())
        return action();
    return int(Usage);
  };
}

} // namespace heddle::cli
