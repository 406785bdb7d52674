//===- configs.cpp - heddle configs ---------------------------------------===//
// Lists the configurations that --config takes for a pattern: one line each, all or a random sample. With --arch it
// needs no GPU.
//===----------------------------------------------------------------------===//
#include "compiler/Driver/ConfigSample.h"
#include "compiler/Driver/DeviceProblem.h"
#include "compiler/Driver/PreparedPattern.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/Verb.h"

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

Json listJson(const PreparedPattern &prepared, const KernelShape &shape, const ConfigList &list) {
  Json json = {{"pattern", prepared.name}, {"arch", shape.archName()}, {"dtype", dtypeName(shape.dtype)},
               {"head_dim", shape.headDim}, {"value_dim", shape.valueDim}, {"skeleton", list.skeleton},
               {"feasible", list.feasible}, {"configs", Json::array()}};
  for (const ListedConfig &config : list.configs)
    json["configs"].push_back({{"changes", config.changes}, {"config", Json::parse(config.json)}});
  return json;
}

Status listTo(std::ostream &stream, const ConfigsOptions &options) {
  auto file = options.pattern.load();
  HEDDLE_TRY(file.status());
  HEDDLE_ASSIGN(PreparedPattern prepared, preparePattern(**file));
  HEDDLE_ASSIGN(const GpuArch *arch, archFor(options));
  KernelShape shape = options.shape.shape(*arch);
  std::optional<SampleSize> sample;
  if (options.sample)
    sample = SampleSize{*options.sample, options.seed};
  HEDDLE_ASSIGN(ConfigList list, listConfigs(prepared, shape, options.config.skeleton, sample));
  if (options.json) {
    printJson(listJson(prepared, shape, list));
    return {};
  }
  for (const ListedConfig &config : list.configs)
    stream << config.changes << '\n';
  return {};
}

} // namespace

Action addConfigs(CLI::App &command) {
  auto options = std::make_shared<ConfigsOptions>();
  options->pattern.add(command);
  addArchOption(command, options->archs); // without it: this machine's GPU
  options->shape.add(command);
  options->shape.addQueries(command);
  options->config.addSkeleton(command);
  command.add_option("--sample", options->sample, "So many of them, at random; a larger sample begins with a smaller one [all, in order]")
      ->type_name("N")->check(CLI::Range(int64_t(1), int64_t(1000000000)));
  addSeedOption(command, options->seed, "Seed of the random order")->capture_default_str();
  addJsonOption(command, options->json);
  return [options] {
    if (Status usage = checkUsage(*options); !usage.isOk())
      return failUsage(usage);
    return finish(listTo(std::cout, *options));
  };
}

} // namespace heddle::cli
