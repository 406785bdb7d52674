//===- Tests.h - what the program can show --------------------------------------------------===//
#ifndef HEDDLE_TESTS_RANKS_TESTS_H
#define HEDDLE_TESTS_RANKS_TESTS_H

#include "Launcher.h"

#include <chrono>

namespace heddle::ranks {

struct TestOptions {
  std::string folder;    // for files
  bool isOnGpus = false; // else over the stand-ins
  int most = 4;          // ranks
  int count = 0;
  unsigned seed = 1;
  std::string only = {}; // how names of cases begin

  // Results of ranks against those of one call: another order of sums, and roundings of products on GPUs, where weights of
  // a mean are rounded to 8 bits, however small it is.
  Tolerance tolerance() const { return isOnGpus ? Tolerance{0.03, 1.0 / 256} : Tolerance{0.01, 0}; }
  TeamOptions team() const;
};

// Each prints a line for a case, "ok ..." or "FAIL ...", and returns how many failed.
int testResults(const TestOptions &options); // calls over ranks against one call, and against themselves
int testKills(const TestOptions &options);   // a rank dies or hangs at a drawn point
int testJoins(const TestOptions &options);   // a rank comes with something else
int testThreads(const TestOptions &options); // failures of ranks that are threads

// Says on GPUs what took how long.
class Stopwatch {
public:
  explicit Stopwatch(const TestOptions &options) : isShown(options.isOnGpus) {}
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }
  // Since the last time.
  void say(const char *what);
  // Likewise, of parts that were measured one by one.
  void say(const char *what, double ofSeconds) const;

private:
  using Clock = std::chrono::steady_clock;
  const bool isShown;
  Clock::time_point begin = Clock::now();
};

// How many failed, of cases that say so themselves.
class Verdict {
public:
  void say(const std::string &name, const std::string &wrong);
  // Counted only, unless something is wrong.
  void count(const std::string &name, const std::string &wrong) {
    if (!wrong.empty())
      say(name, wrong);
  }
  int failures() const { return failed; }

private:
  int failed = 0;
};

} // namespace heddle::ranks

#endif
