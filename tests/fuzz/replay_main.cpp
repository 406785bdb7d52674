//===- replay_main.cpp - a fuzz target over its corpus ----------------------===//
// For builds without libFuzzer. Arguments are folders; each of their files is one input. One that takes 20 s of a
// processor (300 s with sanitizers) hangs: most take a hundredth of a second, and run.sh keeps what takes 2 s.
//===----------------------------------------------------------------------===//
#include "tests/fuzz/Fuzz.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kMostSeconds = 300;
#else
constexpr double kMostSeconds = 20;
#endif
} // namespace

int main(int argc, char **argv) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i)
    for (const auto &entry : std::filesystem::directory_iterator(argv[i]))
      if (entry.is_regular_file())
        files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path &file : files) {
    std::fprintf(stderr, "%s\n", file.c_str()); // the last line names what a crash came from
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    const std::clock_t start = std::clock(); // of a processor
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
    const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
    FUZZ_REQUIRE(seconds <= kMostSeconds, "took " + std::to_string(seconds) + " s of a processor");
  }
  std::printf("%zu inputs\n", files.size());
  return files.empty() ? 1 : 0;
}
