//===- CommandLine.cpp - heddle <verb> ------------------------------------===//
// Owns the command line as a whole: the table of verbs, --help and --version, what a usage error looks like, and
// that a result that could not be written is an error.
//===----------------------------------------------------------------------===//
#include "compiler/Tools/CommandLine.h"

#include "compiler/Driver/Suggest.h"
#include "compiler/Io/Memory.h"
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
#include <unistd.h>

using namespace heddle;
using namespace heddle::cli;

namespace {

constexpr const char *kFooter = R"(
Results go to stdout, progress and diagnostics to stderr. 'heddle VERB --help' lists a verb's options.
A file is written whole or not at all, and never in the place of one that the same command reads.

Exit codes: 0 ok, 1 the input is wrong, 2 usage, 3 this machine lacks something.

Environment:
  HEDDLE_DB                   kernel database (else heddle/kernels.db in $XDG_CACHE_HOME or ~/.cache); --db wins
  HEDDLE_SHIPPED_DB           databases that are only read, after the one above, separated by colons; --shipped-db wins
  HEDDLE_NVRTC_LIBRARY        the NVRTC library file, or the folder that holds it; nothing else is tried
  HEDDLE_CUDA_DRIVER_LIBRARY  the CUDA driver library file
  CUDA_HOME                   a CUDA toolkit; its NVRTC is tried first
)";

std::vector<std::string> verbNames() {
  std::vector<std::string> names;
  for (const Verb &verb : verbs())
    if (!verb.isInternal)
      names.push_back(verb.name);
  return names;
}

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

int usage(const std::string &message, const std::string &verb) {
  std::cerr << "heddle: error: " << safeMessage(message) << "\n"
            << "heddle: note: 'heddle " << verb << (verb.empty() ? "" : " ") << "--help' says what there is\n";
  return Usage;
}

int unknownWord(const CLI::App &command, const std::string &verb) {
  std::vector<std::string> rest = command.remaining(true);
  if (rest.empty())
    return usage("unexpected arguments", verb);
  std::string word = safeLine(rest.front().substr(0, rest.front().find('=')));
  bool isOption = word.size() > 1 && word[0] == '-';
  if (!isOption)
    return usage("unexpected argument '" + word + "'", verb);
  return usage("unknown option '" + word + "'" + didYouMean(word, optionNames(command)), verb);
}

/// `tune --fit` and `tune --predict` ask for what the verb model does.
std::vector<std::string> withoutAliases(std::vector<std::string> words) {
  if (words.empty() || words[0] != "tune")
    return words;
  for (const char *operation : {"fit", "predict"}) {
    const auto option = std::find(words.begin(), words.end(), std::string("--") + operation);
    if (option == words.end())
      continue;
    words.erase(option);
    words[0] = operation;
    words.insert(words.begin(), "model");
    break;
  }
  return words;
}

class CommandLine {
public:
  CommandLine() : app("Compile, tune and run attention kernels from patterns.", "heddle") {
    app.set_help_flag("-h,--help", "Print this help and exit");
    app.set_version_flag("--version", std::string("heddle " HEDDLE_VERSION), "Print the version and exit");
    app.footer(kFooter);
    for (const Verb &verb : verbs()) {
      CLI::App *command = app.add_subcommand(verb.name, verb.summary);
      if (verb.isInternal)
        command->group("");
      actions[command] = verb.add(*command);
    }
  }

  int run(int argc, char **argv) {
    if (argc < 2) {
      std::cerr << app.help();
      return Usage;
    }
    std::vector<std::string> words = withoutAliases({argv + 1, argv + argc});
    const std::string first = words[0];
    const std::vector<Verb> &known = verbs();
    if (first[0] != '-' && std::none_of(known.begin(), known.end(), [&](const Verb &verb) { return verb.name == first; }))
      return usage("unknown verb '" + safeLine(first) + "'" + didYouMean(first, verbNames()) + "; there is " + joined(verbNames()), "");
    try {
      std::reverse(words.begin(), words.end()); // as CLI11 takes them
      app.parse(words);
    } catch (const CLI::Success &success) {
      return app.exit(success);
    } catch (const CLI::ExtrasError &) {
      return unknownWord(chosen() ? *chosen() : app, verbName());
    } catch (const CLI::ParseError &error) {
      return usage(error.what(), verbName());
    }
    return chosen() ? actions[chosen()]() : usage("expected a verb: " + joined(verbNames()), "");
  }

private:
  CLI::App *chosen() {
    std::vector<CLI::App *> parsed = app.get_subcommands();
    return parsed.empty() ? nullptr : parsed.front();
  }
  std::string verbName() { return chosen() ? chosen()->get_name() : ""; }

  CLI::App app;
  std::map<const CLI::App *, Action> actions;
};

} // namespace

namespace {

constexpr const char *kSmaller = "choose smaller sizes, fewer workers, or a machine or a limit (ulimit -v) with more memory";

/// For exceptions that no thread caught, of which the first that is thrown is most often the end of the memory.
[[noreturn]] void endOfUncaught() {
  try {
    if (std::exception_ptr thrown = std::current_exception())
      std::rethrow_exception(thrown);
  } catch (const std::bad_alloc &) {
    constexpr std::string_view message = "heddle: error: out of memory in a thread: choose smaller sizes, fewer workers, or a machine or a "
                                         "limit (ulimit -v) with more memory\n";
    static_cast<void>(!::write(STDERR_FILENO, message.data(), message.size()));
    std::_Exit(Environment);
  } catch (...) { // a bug of this project
  }
  std::abort();
}

int runVerb(int argc, char **argv) {
  try {
    return CommandLine().run(argc, argv);
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
  int code = runVerb(argc, argv);
  std::cout.flush();
  if (!std::cout && code != Environment) // else an error was told, in most cases this one
    code = fail(Status::io("cannot write to stdout"));
  // A search that ends leaves compilations behind, which cannot be stopped: no handlers of exit may run beside them, or what
  // they use is gone (a tune on a busy machine crashed so after its last line).
  std::cerr.flush();
  std::fflush(nullptr);
  std::_Exit(code);
}
