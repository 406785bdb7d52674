// Lists the configurations that --config takes for a pattern: one line each, the first ones or a random sample. With
// --arch it needs no GPU.
#include "compiler/Session/ConfigSample.h"
#include "compiler/Measure/DeviceProblem.h"
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/Verb.h"
#include "runtime/Core/CountText.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {
namespace {

struct ConfigsOptions {
  PatternOptions pattern;
  ShapeOptions shape;
  std::vector<std::string> archs;
  ConfigOptions config;
  std::optional<int64_t> sample;
  uint64_t seed = 1;
  int64_t limit = 1000;
  bool json = false;
};

Status checkUsage(const ConfigsOptions &options) {
  HEDDLE_TRY(options.shape.check());
  if (size_t count = archsOf(options.archs).size(); count > 1)
    return Status::invalidArgument("expected one --arch=ARCH, got " + std::to_string(count));
  return {};
}

/// The one that is named, or that of this machine's GPU.
Result<const GpuArch *> archFor(const ConfigsOptions &options) {
  if (!options.archs.empty())
    return archsOf(options.archs).front();
  Result<Device> device = Device::open();
  if (!device)
    return Status(device.status().code(), device.status().message() + "; --arch=ARCH needs none");
  return archOf(*device);
}

Status forEachListed(const ConfigList &list, const ConfigsOptions &options,
                     const std::function<void(const ListedConfig &)> &visit) {
  return options.sample ? list.forEach(SampleSize{*options.sample, options.seed}, visit)
                        : list.forEach(options.limit, visit);
}

/// As documentText of the whole, which is never in memory.
Status printList(const PreparedPattern &prepared, const KernelShape &shape, const ConfigList &list,
                 const ConfigsOptions &options) {
  const Json head = {{"schema", kJsonSchema},       {"pattern", prepared.name},
                     {"arch", shape.archName()},    {"dtype", dtypeName(shape.elements.q)},
                     {"head_dim", shape.headDim},   {"value_dim", shape.valueDim},
                     {"skeleton", list.skeleton()}, {"feasible", list.feasible()}};
  const std::string opened = head.dump(2);
  std::cout << opened.substr(0, opened.size() - 2) << ",\n  \"configs\": [";
  const char *separator = "\n    ";
  HEDDLE_TRY(forEachListed(list, options, [&](const ListedConfig &config) {
    std::string text = Json{{"changes", config.changes}, {"config", Json::parse(config.json)}}.dump(2);
    for (size_t line = text.find('\n'); line != std::string::npos; line = text.find('\n', line + 1))
      text.insert(line + 1, "    ");
    std::cout << separator << text;
    separator = ",\n    ";
  }));
  std::cout << "\n  ]\n}\n";
  return {};
}

Status listTo(std::ostream &stream, const ConfigsOptions &options) {
  auto file = options.pattern.load();
  HEDDLE_TRY(file.status());
  HEDDLE_ASSIGN(PreparedPattern prepared, preparePattern(**file));
  HEDDLE_ASSIGN(const GpuArch *arch, archFor(options));
  HEDDLE_ASSIGN(const KernelShape shape, options.shape.shape(**file, *arch));
  HEDDLE_ASSIGN(const ConfigList list, ConfigList::of(prepared, shape, options.config.skeleton));
  if (options.json)
    HEDDLE_TRY(printList(prepared, shape, list, options));
  else
    HEDDLE_TRY(forEachListed(list, options, [&](const ListedConfig &config) { stream << config.changes << '\n'; }));
  if (!options.sample && list.feasible() > options.limit)
    note("the first " + grouped(options.limit) + " of " + grouped(list.feasible()) +
         " feasible configurations; --limit=N lists more, --sample=N draws at random");
  return {};
}

} // namespace

Action addConfigs(CLI::App &command) {
  auto options = std::make_shared<ConfigsOptions>();
  options->pattern.add(command);
  addArchOption(command, options->archs); // without it: this machine's GPU
  options->shape.add(command, /*withPages=*/true);
  options->shape.addQueries(command);
  options->config.addSkeleton(command);
  addCount(command, "--sample", options->sample, "N",
           "So many of them, at random; a larger sample begins with a smaller one [the first, in order]")
      ->check(CLI::Range(int64_t(1), int64_t(1000000000)));
  addCount(command, "--limit", options->limit, "N", "Without --sample: list so many")
      ->check(CLI::Range(int64_t(1), int64_t(1000000000)))
      ->capture_default_str();
  addSeedOption(command, options->seed, "Seed of the random order")->capture_default_str();
  addJsonOption(command, options->json);
  return [options] {
    if (Status usage = checkUsage(*options); !usage.isOk())
      return failUsage(usage);
    const Status status = listTo(std::cout, *options);
    return status.isOk() ? int(Ok) : failNames(status);
  };
}

} // namespace heddle::cli
