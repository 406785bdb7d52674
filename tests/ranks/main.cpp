//===- main.cpp - heddle-ranks -----------------------------------------------------------------===//
// heddle-ranks results|kills|joins|threads [--count=N] [--seed=N] [--ranks=N] [--only=TEXT] [--folder=FOLDER]
// Groups of processes (threads: of threads), over the GPUs of this machine and NCCL, or, where HEDDLE_CUDA_DRIVER_LIBRARY names the
// recording driver, over the stand-ins. A line for each case; exit code 1: something failed, 2: usage, 3: what it needs is missing.
//===---------------------------------------------------------------------------------------------===//
#include "Board.h"
#include "Tests.h"

#include "runtime/Device/Device.h"
#include "runtime/Distributed/NcclLibrary.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::ranks {

TeamOptions TestOptions::team() const {
  TeamOptions options;
  options.standsStill = !isOnGpus;
  options.limitSeconds = isOnGpus ? 10 : 0;
  options.patienceSeconds = isOnGpus ? 200 : 120;
  return options;
}

void Verdict::say(const std::string &name, const std::string &wrong) {
  std::printf("%s %s%s%s\n", wrong.empty() ? "ok" : "FAIL", name.c_str(), wrong.empty() ? "" : ": ", wrong.c_str());
  std::fflush(stdout);
  failed += !wrong.empty();
}

void Stopwatch::say(const char *what) {
  say(what, seconds());
  begin = Clock::now();
}

void Stopwatch::say(const char *what, double ofSeconds) const {
  if (isShown)
    std::printf("   %5.1f s: %s\n", ofSeconds, what);
  std::fflush(stdout);
}

} // namespace heddle::ranks

using namespace heddle;
using namespace heddle::ranks;

namespace {

// The process that starts ranks must not touch a GPU: a child looks.
bool hasGpus(int wanted) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const auto count = Device::count();
    const auto nccl = NcclLibrary::open();
    const bool isEnough = count && *count >= wanted && nccl;
    if (!isEnough)
      std::printf("skip: %s\n",
                  !count  ? count.status().message().c_str()
                  : !nccl ? nccl.status().message().c_str()
                          : ("expected " + std::to_string(wanted) + " GPUs, got " + std::to_string(*count)).c_str());
    std::fflush(stdout);
    _exit(isEnough ? 0 : 1);
  }
  int state = 0;
  waitpid(child, &state, 0);
  return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

bool readOption(const char *word, const char *name, std::string &value) {
  const size_t length = std::strlen(name);
  if (std::strncmp(word, name, length) != 0)
    return false;
  value = word + length;
  return true;
}

// Ranks of the stand-ins meet in files: in memory, where there is such a folder, nothing of them is written to a disk.
std::filesystem::path folderOfFiles() {
  const char *ofMemory = "/dev/shm";
  const bool isThere = isStandIn() && access(ofMemory, W_OK) == 0;
  return isThere ? std::filesystem::path(ofMemory) : std::filesystem::temp_directory_path();
}

int usage() {
  std::fprintf(stderr,
               "usage: heddle-ranks results|kills|joins|threads [--count=N] [--seed=N] [--ranks=N] [--only=TEXT] "
               "[--folder=FOLDER]\n");
  return 2;
}

int run(const std::string &verb, const TestOptions &options) {
  if (verb == "results")
    return testResults(options);
  if (verb == "kills")
    return testKills(options);
  return verb == "joins" ? testJoins(options) : testThreads(options);
}

} // namespace

int main(int argc, char **argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb != "results" && verb != "kills" && verb != "joins" && verb != "threads")
    return usage();
  TestOptions options;
  options.count = verb == "threads" ? 200 : 20;
  std::string value, ranks;
  for (int i = 2; i < argc; ++i) {
    if (readOption(argv[i], "--count=", value))
      options.count = std::atoi(value.c_str());
    else if (readOption(argv[i], "--seed=", value))
      options.seed = unsigned(std::atoi(value.c_str()));
    else if (!readOption(argv[i], "--ranks=", ranks) && !readOption(argv[i], "--only=", options.only) &&
             !readOption(argv[i], "--folder=", options.folder))
      return usage();
  }
  const bool makesFolder = options.folder.empty();
  if (makesFolder)
    options.folder = (folderOfFiles() / ("heddle-ranks-" + std::to_string(getpid()))).string();
  options.folder = std::filesystem::absolute(options.folder).string();
  std::filesystem::create_directories(options.folder);
  setenv("HEDDLE_FAKE_NCCL_FOLDER", options.folder.c_str(), 1);
  setenv("HEDDLE_FAKE_CUDA_DEVICES", "8", 0);
  options.isOnGpus = verb != "threads" && !isStandIn();
  options.most =
      std::max(2, std::min(ranks.empty() ? (options.isOnGpus ? 2 : 4) : std::atoi(ranks.c_str()), kMostRanks));
  if (options.isOnGpus && !hasGpus(options.most))
    return 3;
  const int failed = run(verb, options);
  if (makesFolder)
    std::filesystem::remove_all(options.folder);
  return failed ? 1 : 0;
}
