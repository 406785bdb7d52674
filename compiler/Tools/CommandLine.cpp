// Owns the command line as a whole: the table of verbs, what every verb takes (help, how much it says), what a usage
// error looks like, and that a result that could not be written is an error.

#include "compiler/Pattern/Suggest.h"
#include "compiler/Io/Memory.h"
#include "compiler/Tools/CommandTree.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/OptionWords.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/SafeStream.h"
#include "compiler/Tools/Verb.h"
#include "runtime/Core/SafeText.h"
#include "runtime/Core/Thrown.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <unistd.h>

using namespace heddle;
using namespace heddle::cli;

namespace {

constexpr const char *kFooter = R"(Examples:
  heddle explain causal --seqlen=8k --heads=16   # a pattern of the library; 'heddle help patterns' lists them
  heddle show longformer --seqlen=1k
  heddle compile causal --arch=all --emit=cuda -o causal_{arch}.cu

Results go to stdout, progress and diagnostics to stderr. 'heddle help VERB' lists a verb's options with examples, 'heddle
help environment' the variables that are read; 'heddle man' prints all of it.
A file is written whole or not at all, and never in the place of one that the same command reads.

Exit codes: 0 ok, 1 the input is wrong, 2 usage, 3 this machine lacks something.)";

constexpr const char *kCountNote = "Counts may be written 8k (8192), 1M, 1G (times 1024, 1024^2, 1024^3) or 2^20.\n";

std::string joined(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// The long options of a command and of its subcommands that were named, as they are typed.
std::vector<std::string> optionNames(const CLI::App &command) {
  std::vector<std::string> names;
  for (const CLI::Option *option : command.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  for (const CLI::App *sub : command.get_subcommands())
    for (const std::string &name : optionNames(*sub))
      names.push_back(name);
  return names;
}

/// `path`: the words up to the verb or operation whose help says more, "" for all.
int usage(const std::string &message, const std::string &path) {
  const std::string hint = "'heddle " + path + (path.empty() ? "" : " ") + "--help' says what there is";
  std::cerr << "heddle: error: " << safeMessage(message) << "\n"
            << "heddle: note: " << hint << '\n';
  recordFailure(Status::invalidArgument(safeMessage(message)), Usage, {hint});
  return Usage;
}

int unknownWord(const CLI::App &command, const std::string &path) {
  std::vector<std::string> rest = command.remaining(true);
  if (rest.empty())
    return usage("unexpected arguments", path);
  std::string word = safeLine(rest.front().substr(0, rest.front().find('=')));
  bool isOption = word.size() > 1 && word[0] == '-';
  if (!isOption)
    return usage("unexpected argument '" + word + "'", path);
  return usage("unknown option '" + word + "'" + didYouMean(word, optionNames(command)), path);
}

bool isOptionWord(const std::string &word) { return !word.empty() && word[0] == '-'; }

/// What stands before it are options, none of which takes a value there.
std::vector<std::string>::iterator verbIn(std::vector<std::string> &words) {
  return std::find_if_not(words.begin(), words.end(), isOptionWord);
}

/// `help VERB OPERATION` is `VERB OPERATION --help`, unless help has a topic of that name.
std::vector<std::string> withoutHelp(std::vector<std::string> words, const CLI::App &help) {
  const auto verb = verbIn(words);
  if (verb == words.end() || *verb != help.get_name())
    return words;
  const auto word = std::find_if_not(verb + 1, words.end(), isOptionWord);
  const bool asksForItself = word == words.end() && std::any_of(verb, words.end(), [](const std::string &option) {
                               return option == "-h" || option == "--help";
                             });
  if (asksForItself)
    return words;
  const std::vector<std::string> topics = choicesOf(*help.get_option("WORD"));
  if (word != words.end() && (word->empty() || std::find(topics.begin(), topics.end(), *word) != topics.end()))
    return words;
  words.erase(verb);
  words.push_back("--help");
  return words;
}

/// What a command's help ends with.
std::string footerOf(const CLI::App &command, const std::string &path) {
  const std::vector<const CLI::Option *> options = command.get_options();
  const bool hasCounts =
      std::any_of(options.begin(), options.end(), [](const CLI::Option *option) { return isCount(*option); });
  const std::string own = command.get_footer();
  return (own.empty() ? "" : own + "\n\n") + (hasCounts ? kCountNote + std::string("\n") : "") + exampleText(path);
}

/// To a command and all below it: -q and -v, and how its help ends.
void complete(CLI::App &command, const std::string &path) {
  const std::vector<CLI::App *> below = command.get_subcommands([](CLI::App *) { return true; });
  addMessageOptions(command);
  command.footer(footerOf(command, path));
  for (CLI::App *sub : below)
    complete(*sub, path + " " + sub->get_name());
}

class CommandLine {
public:
  CommandLine() : app("Compile, tune and run attention kernels from patterns.", "heddle") {
    app.set_help_flag("-h,--help", "Print this help and exit");
    app.set_version_flag("-V,--version", std::string("heddle " HEDDLE_VERSION), "Print the version and exit");
    for (const Verb &verb : verbs()) {
      CLI::App *command = app.add_subcommand(verb.name, verb.summary);
      if (verb.isInternal)
        command->group("");
      actions[command] = verb.add(*command);
      complete(*command, app.get_name() + " " + verb.name);
    }
    addMessageOptions(app);
    app.footer(kFooter);
  }

  int run(int argc, char **argv) {
    if (argc < 2) {
      std::cerr << app.help();
      return Usage;
    }
    std::vector<std::string> words = withoutHelp({argv + 1, argv + argc}, *app.get_subcommand("help"));
    wantsJson = std::find(words.begin(), std::find(words.begin(), words.end(), "--"), "--json") !=
                std::find(words.begin(), words.end(), "--");
    if (const std::optional<int> unknown = unknownVerb(words))
      return *unknown;
    try {
      std::reverse(words.begin(), words.end()); // as CLI11 takes them
      app.parse(words);
    } catch (const CLI::Success &success) {
      wantsJson = false;
      return app.exit(success);
    } catch (const CLI::ExtrasError &) {
      const bool isBeforeVerb = !chosen() || chosen()->remaining(true).empty();
      return unknownWord(isBeforeVerb ? app : *chosen(), path());
    } catch (const CLI::ParseError &error) {
      return usage(error.what(), path());
    }
    if (Status messages = checkMessageOptions(); !messages.isOk())
      return usage(messages.message(), path());
    return chosen() ? actions[chosen()]() : usage("expected a verb: " + joined(namesBelow(app)), "");
  }

  /// Whether a failure is to be a document on stdout, too. Verbs that print none refuse the option.
  bool isJsonWanted() const { return wantsJson; }

private:
  static std::vector<std::string> namesBelow(const CLI::App &command) {
    std::vector<std::string> names;
    for (const CLI::App *sub : visibleCommands(command))
      names.push_back(sub->get_name());
    return names;
  }

  /// The exit code if a word that stands where a verb or operation should is none.
  std::optional<int> unknownVerb(const std::vector<std::string> &words) const {
    const CLI::App *command = &app;
    std::string path;
    for (const std::string &word : words) {
      const std::vector<std::string> names = namesBelow(*command);
      if (isOptionWord(word))
        continue;
      if (names.empty() || word.empty())
        break;
      const std::vector<const CLI::App *> called =
          command->get_subcommands([&](const CLI::App *sub) { return sub->get_name() == word; });
      if (!called.empty()) {
        command = called.front();
        path += (path.empty() ? "" : " ") + word;
        continue;
      }
      const std::string kind = path.empty() ? "verb '" : "operation '",
                        of = path.empty() ? "" : " of 'heddle " + path + "'";
      return usage("unknown " + kind + word + "'" + of + didYouMean(word, names) + "; there is " + joined(names), path);
    }
    return std::nullopt;
  }

  CLI::App *chosen() {
    std::vector<CLI::App *> parsed = app.get_subcommands();
    return parsed.empty() ? nullptr : parsed.front();
  }
  /// "cache ls".
  std::string path() {
    std::string words;
    for (CLI::App *command = chosen(); command;) {
      words += (words.empty() ? "" : " ") + command->get_name();
      const std::vector<CLI::App *> parsed = command->get_subcommands();
      command = parsed.empty() ? nullptr : parsed.front();
    }
    return words;
  }

  CLI::App app;
  std::map<const CLI::App *, Action> actions;
  bool wantsJson = false;
};

} // namespace

namespace {

constexpr const char *kSmaller =
    "choose smaller sizes, fewer workers, or a machine or a limit (ulimit -v) with more memory";

/// For exceptions that no thread caught, of which the first that is thrown is most often the end of the memory.
[[noreturn]] void endOfUncaught() {
  try {
    if (std::exception_ptr thrown = std::current_exception())
      std::rethrow_exception(thrown);
  } catch (const std::bad_alloc &) {
    constexpr std::string_view message =
        "heddle: error: out of memory in a thread: choose smaller sizes, fewer workers, or a machine or a "
        "limit (ulimit -v) with more memory\n";
    static_cast<void>(!::write(STDERR_FILENO, message.data(), message.size()));
    std::_Exit(Environment);
  } catch (...) { // a bug of this project
  }
  std::abort();
}

int runVerb(CommandLine &commandLine, int argc, char **argv) {
  try {
    return commandLine.run(argc, argv);
  } catch (const std::bad_alloc &) {
    return fail(outOfMemory(kSmaller));
  } catch (const std::exception &thrown) {
    return fail(statusOf(thrown));
  }
}

} // namespace

void heddle::cli::runCommandLine(int argc, char **argv) {
  std::ios::sync_with_stdio(false);
  std::set_terminate(endOfUncaught);
  static SafeStream safeOut(std::cout), safeErr(std::cerr); // to the end of the process, which no destructor sees
  CommandLine commandLine;
  int code = runVerb(commandLine, argc, argv);
  tellLibraries();
  flushDocument(commandLine.isJsonWanted());
  std::cout.flush();
  if (!std::cout && code != Environment) // else an error was told, in most cases this one
    code = fail(Status::io("cannot write to stdout"));
  // A search that ends leaves compilations behind, which cannot be stopped: no handlers of exit may run beside them, or
  // what they use is gone (a tune on a busy machine crashed so after its last line).
  std::cerr.flush();
  std::fflush(nullptr);
  std::_Exit(code);
}
