// What is no verb: 'heddle help VERB' is 'heddle VERB --help' (CommandLine.cpp).
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Pattern/PatternSource.h"
#include "compiler/Tools/Cache.h"
#include "compiler/Tools/CommandTree.h"
#include "compiler/Tools/OptionWords.h"
#include "compiler/Tools/Verb.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {
namespace {

void printEnvironment() {
  std::cout << "Environment:\n";
  for (const Variable &variable : environment())
    std::cout << "  " << padded(variable.name, 26) << variable.meaning << '\n';
}

/// The first sentence of the comment that a file begins with.
std::string firstSentence(std::string_view text) {
  std::string comment;
  for (size_t begin = 0; text.substr(begin, 2) == "//";) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin + 2, end - begin - 2);
    comment += line;
    begin = std::min(end + 1, text.size());
  }
  const size_t end = comment.find(". ");
  return comment.substr(std::min<size_t>(1, comment.size()), end == std::string::npos ? end : end - 1);
}

void printPatterns() {
  std::cout << "Patterns of the library, by the names that every verb takes in the place of a file:\n";
  for (const EmbeddedFile &file : libraryPatterns()) {
    const std::string name(file.name.substr(0, file.name.size() - std::string_view(".mlir").size()));
    std::cout << "  " << padded(name, 19) << firstSentence(file.text) << '\n';
  }
}

} // namespace

Action addHelp(CLI::App &command) {
  auto topic = std::make_shared<std::string>();
  std::vector<std::string> topics = {"environment", "patterns"};
  command.add_option("WORD", *topic, "A verb, a verb and an operation, environment, or patterns")
      ->required()
      ->check(oneOf("topic", topics));
  return [topic] {
    *topic == "patterns" ? printPatterns() : printEnvironment();
    return int(Ok);
  };
}

} // namespace heddle::cli
