//===- ProgressLine.cpp - how far a search is, on stderr ------------------===//
#include "compiler/Tools/ProgressLine.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace heddle::cli {

ProgressLine::ProgressLine() : isTerminal(isatty(STDERR_FILENO)) {}

void ProgressLine::show(const tuner::Progress &progress) {
  if (!isTerminal)
    return;
  constexpr int kWidth = 24;
  double share = progress.budgetSeconds > 0 ? progress.elapsedSeconds / progress.budgetSeconds : 0;
  int filled = std::clamp(static_cast<int>(share * kWidth), 0, kWidth);
  std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
  std::fprintf(stderr, "\r\033[K[%s] %.0f/%.0f s, %zu of %zu tried, %zu failed, best %.1f us%s", bar.c_str(),
               progress.elapsedSeconds, progress.budgetSeconds, progress.done, progress.total, progress.failed,
               progress.bestUs, progress.isFinal ? ", final" : "");
  std::fflush(stderr);
  isShown = true;
}

void ProgressLine::finish() {
  if (isShown)
    std::fprintf(stderr, "\r\033[K");
  isShown = false;
}

} // namespace heddle::cli
