#include "compiler/Tools/RingLinks.h"

#include "compiler/Measure/LinkTimes.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <iomanip>

namespace heddle::cli {
namespace {

constexpr int64_t kMib = int64_t(1) << 20, kMostMib = 16384;

struct LinksOptions {
  int64_t mostMib = 1024;
  std::optional<int32_t> rank, ranks;
  std::string meet;
  DatabaseOptions database;
  bool json = false;
};

/// 1, 16, 64, 256 and so on, in MiB.
std::vector<int64_t> sizesOf(int64_t mostMib) {
  std::vector<int64_t> sizes = {kMib};
  for (int64_t mib = 16; mib <= mostMib; mib *= 4)
    sizes.push_back(mib * kMib);
  return sizes;
}

/// As `heddle ring plan` takes it.
std::string linksWord(const LinkTimes &times) {
  std::ostringstream word;
  word << std::setprecision(3) << times.gbps << ',' << times.latencyUs;
  return word.str();
}

Json linksJson(const LinkTimes &times) {
  Json gpus = Json::array(), samples = Json::array();
  for (const LinkGpu &gpu : times.gpus)
    gpus.push_back({{"name", gpu.name}, {"pci", gpu.pci}});
  for (const LinkSample &sample : times.samples)
    samples.push_back({{"bytes", sample.bytes}, {"us", sample.us}, {"gbps", sample.gbps()}});
  return {{"gpus", gpus},
          {"nccl", times.nccl},
          {"messages", samples},
          {"link_gbps", times.gbps},
          {"latency_us", times.latencyUs},
          {"links", linksWord(times)}};
}

void printText(const LinkTimes &times) {
  std::cout << "ring links of " << times.gpus.size() << " GPUs, NCCL " << times.nccl
            << ": each sends to the next and receives from the one before, all at once\n";
  for (size_t rank = 0; rank < times.gpus.size(); ++rank)
    std::cout << "rank " << std::left << std::setw(11) << rank << times.gpus[rank].name << ", " << times.gpus[rank].pci
              << '\n';
  std::cout << std::right << std::setw(10) << "MiB" << std::setw(14) << "us" << std::setw(16) << "GB/s each way\n";
  for (const LinkSample &sample : times.samples)
    std::cout << std::setw(10) << sample.bytes / kMib << std::fixed << std::setprecision(1) << std::setw(14)
              << sample.us << std::setw(15) << sample.gbps() << '\n';
  std::cout << "for heddle ring plan, which finds them in the database: --links=" << linksWord(times) << '\n';
}

Status keep(const LinksOptions &options, const LinkTimes &times) {
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readWrite));
  return store.recordLinks(recordOf(times));
}

int runLinks(const LinksOptions &options) {
  if (options.rank && *options.rank >= *options.ranks)
    return failUsage(Status::invalidArgument("--rank: expected 0 to " + std::to_string(*options.ranks - 1) + " of " +
                                             std::to_string(*options.ranks) + " ranks, got " +
                                             std::to_string(*options.rank)));
  const std::vector<int64_t> sizes = sizesOf(options.mostMib);
  Result<LinkTimes> times =
      options.rank ? measureLinks(sizes, {*options.rank, *options.ranks, options.meet}) : measureLinks(sizes);
  tellLibraries();
  if (!times)
    return fail(times.status());
  if (options.rank.value_or(0) != 0)
    return Ok; // rank 0 says it
  if (options.json)
    printJson(linksJson(*times));
  else
    printText(*times);
  return finish(keep(options, *times));
}

} // namespace

Action addRingLinks(CLI::App &command) {
  auto options = std::make_shared<LinksOptions>();
  addCount(command, "--most", options->mostMib, "MIB",
           "Messages of 1, 16, 64, 256, ... MiB up to so many (default 1024); a GPU needs twice as much memory")
      ->check(CLI::Range(int64_t(1), kMostMib));
  CLI::Option *rank = addCount(command, "--rank", options->rank, "R", "Be one rank; others are processes of their own")
                          ->check(CLI::Range(0, 1023));
  CLI::Option *ranks =
      addCount(command, "--ranks", options->ranks, "P", "How many there are [all GPUs of this machine]")
          ->check(CLI::Range(2, 1024));
  CLI::Option *meet = addValue(command, "--meet", options->meet, "FILE",
                               "Where they meet: rank 0 makes the file, all must see it, and removes it");
  rank->needs(ranks)->needs(meet);
  ranks->needs(rank);
  meet->needs(rank);
  options->database.add(command);
  addJsonOption(command, options->json);
  return [options] { return runLinks(*options); };
}

} // namespace heddle::cli
