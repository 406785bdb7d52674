// The other process of a search (MeasureProcess.h). Nobody types it.
#include "compiler/Measure/MeasureProcess.h"
#include "compiler/Tools/Verb.h"

#include <CLI/CLI.hpp>

#include <sys/socket.h>
#include <unistd.h>

namespace heddle::cli {

static int measureCandidates() {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
    return failUsage(
        Status::invalidArgument("this verb serves `heddle tune`, which starts it; there is no search to serve"));
  return finish(serveMeasurements(STDIN_FILENO));
}

Action addMeasureCandidates(CLI::App &) { return measureCandidates; }

} // namespace heddle::cli
