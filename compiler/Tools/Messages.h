// Owns how much a command says beside its result and its errors: --quiet and --verbose, which every verb takes, before
// its words as well as behind them.
#pragma once

#include "runtime/Core/Status.h"
#include "tuner/Search/TuningSession.h"

#include <string>

namespace CLI {
class App;
}

namespace heddle::cli {

/// -q,--quiet and -v,--verbose.
void addMessageOptions(CLI::App &command);
/// For after parsing: invalidArgument if both were given, wherever each stood.
Status checkMessageOptions();

/// No progress and no notes; warnings and errors stay.
bool isQuiet();

/// "heddle: note: ...", unless it is to be quiet.
void note(const std::string &text);
/// "heddle: warning: ...".
void warn(const std::string &text);
/// "heddle: ...", what was found where, for --verbose alone.
void tell(const std::string &text);
/// Likewise: the libraries of CUDA that this process has opened.
void tellLibraries();

class ProgressLine {
public:
  ProgressLine();
  void show(const tuner::Progress &progress);
  /// `share` of the work is done, from 0 to 1.
  void show(double share, const std::string &text);
  /// Leaves an empty line for what follows.
  void finish();

private:
  bool isTerminal, isShown = false;
};

} // namespace heddle::cli
