#include "compiler/Tools/Messages.h"
#include "runtime/Core/SafeText.h"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <iostream>
#include <link.h>
#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace heddle::cli {

/// They hold for this process, and are set while options are parsed, before anything is said.
static bool quiet = false, verbose = false;

void addMessageOptions(CLI::App &command) {
  command.add_flag("-q,--quiet", quiet, "No progress and no notes; warnings and errors stay");
  command.add_flag("-v,--verbose", verbose,
                   "Say on stderr what was found where: patterns, databases, NVRTC, the driver");
}

Status checkMessageOptions() {
  return quiet && verbose ? Status::invalidArgument("--quiet excludes --verbose") : Status();
}

bool isQuiet() { return quiet; }

static void print(const char *kind, const std::string &text) {
  std::cout.flush();
  std::cerr << "heddle: " << kind << text << '\n';
}

void note(const std::string &text) {
  if (!quiet)
    print("note: ", text);
}

void warn(const std::string &text) { print("warning: ", text); }

void tell(const std::string &text) {
  if (verbose)
    print("", text);
}

/// The loader knows best. A driver may have any name that is given.
static int tellLibrary(dl_phdr_info *info, size_t, void *) {
  const std::string path = info->dlpi_name, name = path.substr(path.rfind('/') + 1);
  bool isTold = false;
  for (const char *opening : {"libcuda", "libnvrtc.", "libnccl."})
    isTold = isTold || name.rfind(opening, 0) == 0;
  for (const char *variable : {"HEDDLE_CUDA_DRIVER_LIBRARY", "HEDDLE_NCCL_LIBRARY"})
    isTold = isTold || (std::getenv(variable) && path == std::getenv(variable));
  if (isTold)
    tell("opened " + path);
  return 0;
}

void tellLibraries() {
  if (verbose)
    dl_iterate_phdr(tellLibrary, nullptr);
}

ProgressLine::ProgressLine() : isTerminal(isatty(STDERR_FILENO) && !isQuiet()) {}

void ProgressLine::show(double share, const std::string &text) {
  if (!isTerminal)
    return;
  constexpr int kWidth = 24;
  const int filled = std::clamp(static_cast<int>(share * kWidth), 0, kWidth);
  const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
  std::fprintf(stderr, "\r\033[K[%s] %s", bar.c_str(), safeLine(text).c_str());
  std::fflush(stderr);
  isShown = true;
}

void ProgressLine::show(const tuner::Progress &progress) {
  char text[160];
  std::snprintf(text, sizeof text, "%.0f/%.0f s, %zu of %zu tried, %zu failed, best %.1f us%s", progress.elapsedSeconds,
                progress.budgetSeconds, progress.done, progress.total, progress.failed, progress.bestUs,
                progress.isFinal ? ", final" : "");
  show(progress.budgetSeconds > 0 ? progress.elapsedSeconds / progress.budgetSeconds : 0, text);
}

void ProgressLine::finish() {
  if (isShown)
    std::fprintf(stderr, "\r\033[K");
  isShown = false;
}

} // namespace heddle::cli
