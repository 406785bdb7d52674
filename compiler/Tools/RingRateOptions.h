// Owns how fast `heddle ring plan` takes links and kernels to be: as given, else as a database has them, else as assumed.
#pragma once

#include "compiler/Tools/Options.h"
#include "compiler/Views/RingPlan.h"

namespace heddle::cli {

struct RingRateOptions {
  std::string links, hostLinks, gpu = kGpuOfRates;
  std::optional<int64_t> host;
  std::optional<double> rate, efficiency;
  double launchUs = kLaunchUs;
  DatabaseOptions database;

  void add(CLI::App &command, int64_t mostRanks);
  /// Without what kernels of plans take.
  void addLinks(CLI::App &command, int64_t mostRanks);
  /// Rates of the request, and where they are from; its sizes and ranks are there.
  Status set(const PatternFile &file, views::RingRequest &request) const;
};

} // namespace heddle::cli
