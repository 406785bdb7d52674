//===- main.cpp - heddle-host-cost ------------------------------------------===//
// heddle-host-cost --db=FILE [--pattern=NAME] [--sizes=N,N] [--NAME=N...]: what the host pays for launches through the
// C interface, and what must hold beside it: many lengths through one kernel, many threads, a CUDA graph, no memory
// beyond what is given. A recording driver in HEDDLE_CUDA_DRIVER_LIBRARY serves where no GPU is. Prints one JSON line;
// exit code 1 if something is wrong or above --prepared-limit-us or --first-limit-ms.
//===----------------------------------------------------------------------===//
#include "Scene.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

using namespace hostcost;

namespace {

Status parseSizes(const std::string &text, std::vector<int64_t> &sizes) {
  std::stringstream stream(text);
  sizes.clear();
  for (std::string item; std::getline(stream, item, ',');)
    sizes.push_back(std::atoll(item.c_str()));
  return {};
}

Status parseArgument(const std::string &argument, Options &options) {
  const std::pair<const char *, int64_t *> numbers[] = {{"--head-dim=", &options.headDim},
                                                        {"--heads=", &options.heads},
                                                        {"--launches=", &options.launches},
                                                        {"--sample=", &options.sample},
                                                        {"--rounds=", &options.rounds},
                                                        {"--lengths=", &options.lengths},
                                                        {"--threads=", &options.threads},
                                                        {"--streams=", &options.streams},
                                                        {"--graph=", &options.graphLaunches},
                                                        {"--launches-of-each=", &options.launchesOfEach},
                                                        {"--memory-tokens=", &options.memoryTokens}};
  const std::pair<const char *, double *> limits[] = {{"--prepared-limit-us=", &options.preparedLimitUs},
                                                      {"--first-limit-ms=", &options.firstLimitMs}};
  const std::pair<const char *, std::string *> texts[] = {{"--db=", &options.database},
                                                          {"--pattern=", &options.pattern}};
  auto valueOf = [&](const char *name) {
    return argument.rfind(name, 0) == 0 ? argument.c_str() + std::string(name).size() : nullptr;
  };
  for (auto [name, number] : numbers)
    if (const char *value = valueOf(name))
      return (*number = std::atoll(value)) > 0
                 ? Status()
                 : Status::invalidArgument(std::string(name) + ": expected a number above 0");
  for (auto [name, limit] : limits)
    if (const char *value = valueOf(name))
      return (*limit = std::atof(value)) > 0
                 ? Status()
                 : Status::invalidArgument(std::string(name) + ": expected a number above 0");
  for (auto [name, text] : texts)
    if (const char *value = valueOf(name))
      return *text = value, Status();
  if (const char *value = valueOf("--sizes="))
    return parseSizes(value, options.sizes);
  return Status::invalidArgument(
      "no option '" + argument +
      "'; there are --db, --pattern, --sizes, --head-dim, --heads, --launches, --rounds, --sample, "
      "--lengths, --threads, --launches-of-each, --streams, --graph, --memory-tokens, "
      "--prepared-limit-us, --first-limit-ms");
}

Status parse(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; ++i)
    HEDDLE_TRY(parseArgument(argv[i], options));
  return options.database.empty() ? Status::invalidArgument("expected --db=FILE, a database or a package") : Status();
}

Result<bool> measure(const Options &options) {
  FirstCall first;
  HEDDLE_ASSIGN(Scene scene, openScene(options, first));
  HEDDLE_ASSIGN(const Json memory, measureMemory(scene));
  double preparedUs = 0;
  heddle_stats_sample(uint32_t(options.sample));
  HEDDLE_ASSIGN(const Json launches, measureLaunches(scene, preparedUs));
  HEDDLE_ASSIGN(const Json lengths, tryLengths(scene));
  HEDDLE_ASSIGN(const Json graph, tryGraph(scene));
  HEDDLE_ASSIGN(const Json threads, tryThreads(scene));
  HEDDLE_ASSIGN(const Json foreign, tryForeign(scene));
  const bool isGood = (options.preparedLimitUs == 0 || preparedUs <= options.preparedLimitUs) &&
                      (options.firstLimitMs == 0 || first.beyondMs <= options.firstLimitMs);
  const heddle_kernel_info info = scene.kernel.info();
  Json report;
  report.add("gpu", scene.device.info().identity.deviceName)
      .add("pattern", options.pattern)
      .add("kernel", std::string(info.content_key).substr(0, 12))
      .add("kernel_arch", std::string(info.arch))
      .add("host_us", launches)
      .add("first_call_ms", first.report)
      .add("lengths", lengths)
      .add("graph", graph)
      .add("threads", threads)
      .add("memory", memory)
      .add("foreign", foreign)
      .add("samples", heddle::api::stats().samples)
      .add("within_limits", isGood);
  std::printf("%s\n", report.str().c_str());
  return isGood;
}

int complain(const Status &status, int code) {
  std::fprintf(stderr, "heddle-host-cost: error: %s\n", status.message().c_str());
  return code;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  if (Status status = parse(argc, argv, options); !status.isOk())
    return complain(status, 2);
  const Result<bool> isGood = measure(options);
  if (!isGood)
    return complain(isGood.status(), isGood.status().code() == heddle::StatusCode::internal ? 1 : 3);
  return *isGood ? 0 : 1;
}
