// Owns the seam between main and the verbs: a verb adds its options to a CLI11 command and returns what to do.
// Results go to stdout, progress and diagnostics to stderr. Listed in Registry.cpp.
#pragma once

#include "runtime/Core/Status.h"

#include <functional>
#include <vector>

namespace CLI {
class App;
}

namespace heddle::cli {

/// Exit codes of every verb.
enum ExitCode : int { Ok = 0, BadInput = 1, Usage = 2, Environment = 3 };

/// Runs after parsing; returns the exit code.
using Action = std::function<int()>;

struct Verb {
  const char *name;
  const char *summary;
  /// Adds options to `command`; the action sees them through state that it owns.
  Action (*add)(CLI::App &command);
  bool isInternal = false; ///< started by other verbs: in no list
};

/// All verbs, in the order in which --help lists those that are not internal.
const std::vector<Verb> &verbs();

/// Makes the operations subcommands of a verb, which needs one of them.
Action addOperations(CLI::App &command, const std::vector<Verb> &operations);

Action addCheck(CLI::App &command);
Action addExplain(CLI::App &command);
Action addShow(CLI::App &command);
Action addDiff(CLI::App &command);
Action addCompile(CLI::App &command);
Action addConfigs(CLI::App &command);
Action addPack(CLI::App &command);
Action addSweep(CLI::App &command);
Action addTune(CLI::App &command);
Action addRun(CLI::App &command);
Action addBench(CLI::App &command);
Action addCache(CLI::App &command);
Action addReport(CLI::App &command);
Action addRing(CLI::App &command);
Action addCost(CLI::App &command);
Action addMakeInputs(CLI::App &command);
Action addQuantize(CLI::App &command);
Action addHelp(CLI::App &command);
Action addCompletion(CLI::App &command);
Action addMan(CLI::App &command);
Action addMeasureCandidates(CLI::App &command);

/// invalidArgument, notFound, unsupported, corrupt, newer: BadInput; unavailable, io, denied, internal: Environment.
int exitCodeOf(const Status &status);

/// Prints "heddle: error: ..." (or the diagnostics as they are, if the message already names a file and line) to
/// stderr and returns the exit code.
int fail(const Status &status);
/// The same for a wrong option value: always Usage.
int failUsage(const Status &status);
/// For stages that find no more than what words of the command line name: a name that stands for nothing is a wrong
/// word (notFound: Usage), anything else as fail().
int failNames(const Status &status);
/// Ok, or what fail() returns.
int finish(const Status &status);

/// Runs what the arguments of main say, and ends the process with its exit code.
[[noreturn]] void runCommandLine(int argc, char **argv);

} // namespace heddle::cli
