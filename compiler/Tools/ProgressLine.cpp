//===- ProgressLine.cpp - how far long work is, on stderr ------------------===//
#include "compiler/Tools/ProgressLine.h"
#include "compiler/Tools/Messages.h"
#include "runtime/Core/SafeText.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace heddle::cli {

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
