#include "compiler/Tools/RingRateOptions.h"

#include "codegen/Target/GpuModel.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Views/RingRates.h"

#include <CLI/CLI.hpp>

namespace heddle::cli {
namespace {

/// "50" or "50,10": GB/s, and microseconds.
std::optional<std::pair<double, double>> parseLinks(const std::string &text) {
  char *end = nullptr;
  const double rate = std::strtod(text.c_str(), &end);
  double latency = 0;
  if (*end == ',' && end[1])
    latency = std::strtod(end + 1, &end);
  const bool isRead = !text.empty() && *end == '\0' && rate >= 1e-3 && rate <= 1e6 && latency >= 0 && latency <= 1e6;
  return isRead ? std::optional(std::pair(rate, latency)) : std::nullopt;
}

CLI::Validator linkRates() {
  auto check = [](std::string &text) {
    return parseLinks(text) ? std::string()
                            : "expected GB/s each way from 0.001 to 1e6, and microseconds of a message behind a comma, "
                              "such as 50,10, got '" +
                                  text + "'";
  };
  return CLI::Validator(check, "", "GBPS[,US]");
}

/// None where the database is not named and links are given.
Result<std::optional<views::MeasuredRates>> measuredRates(const RingRateOptions &options) {
  const bool lacksLinks = options.links.empty() || (options.host && options.hostLinks.empty());
  if (options.database.given.empty() && !lacksLinks)
    return std::optional<views::MeasuredRates>();
  const Result<Store> store = options.database.open(StoreMode::readOnly);
  if (!store)
    return lacksLinks
               ? Status(store.status().code(),
                        "links are not given, and those that were measured are not known: " + store.status().message())
               : store.status();
  views::MeasuredRates measured;
  HEDDLE_ASSIGN(measured.tuned.winners, store->winners());
  HEDDLE_ASSIGN(measured.links, store->links());
  measured.tuned.database = store->path();
  return std::optional(std::move(measured));
}

/// GB/s and microseconds, as given or as measured.
Result<std::pair<double, double>> linksOf(const std::string &given, const char *option, const std::string &gpu,
                                          const views::MeasuredRates *measured, views::LinkSpan span, int64_t ranks,
                                          std::string &note) {
  if (!given.empty())
    return *parseLinks(given);
  const LinkRecord *links = views::nearestLinks(*measured, gpu, span, ranks);
  if (!links)
    return Status::invalidArgument(std::string(option) + ": expected GBPS[,US], or links of such GPUs (" + gpu +
                                   ") in '" + measured->tuned.database + "': heddle ring links measures them" +
                                   (span == views::LinkSpan::betweenHosts ? ", a rank on each host" : ""));
  note += (note.empty() ? "measured: " : ", ") + views::wordsOf(*links);
  return std::pair(links->gbps, links->latencyUs);
}

Status setLinks(const RingRateOptions &options, const GpuModel &gpu, const views::MeasuredRates *measured,
                views::RingRequest &request) {
  using views::LinkSpan;
  RingRates &rates = request.call.rates;
  const std::string name(gpu.name);
  const LinkSpan span = options.host ? LinkSpan::betweenHosts : LinkSpan::any;
  HEDDLE_ASSIGN(std::tie(rates.linkGBps, rates.latencyUs),
                linksOf(options.links, "--links", name, measured, span, request.ranks, request.linkNote));
  if (!options.host)
    return {};
  rates.hostRanks = *options.host;
  HEDDLE_ASSIGN(
      std::tie(rates.hostGBps, rates.hostLatencyUs),
      linksOf(options.hostLinks, "--host-links", name, measured, LinkSpan::inHost, *options.host, request.linkNote));
  return {};
}

/// What is given, else what was tuned, else a share of the data sheet.
double kernelTflops(const RingRateOptions &options, const GpuModel &gpu, const views::MeasuredRates *measured,
                    const PatternFile &file, views::RingRequest &request) {
  if (options.rate) {
    request.rateNote = "as given";
    return *options.rate;
  }
  const bool isAsked = measured && !options.efficiency;
  if (const auto tuned = isAsked ? views::kernelRate(*measured, file, request, std::string(gpu.name))
                                 : std::optional<views::TunedRate>()) {
    request.rateNote = "measured: " + tuned->problem;
    return tuned->tflops;
  }
  const double share = options.efficiency.value_or(kKernelEfficiency), sheet = gpu.matrixTflops(request.call.dtype);
  char note[96];
  std::snprintf(note, sizeof note, "assumed: %.3g%% of the %.4g of %s", share * 100, sheet,
                std::string(gpu.fullName).c_str());
  request.rateNote = note;
  return sheet * share;
}

} // namespace

Status RingRateOptions::set(const PatternFile &file, views::RingRequest &request) const {
  HEDDLE_ASSIGN(const std::optional<views::MeasuredRates> found, measuredRates(*this));
  const views::MeasuredRates *measured = found ? &*found : nullptr;
  HEDDLE_ASSIGN(const GpuModel *model, findGpuModel(gpu));
  HEDDLE_TRY(setLinks(*this, *model, measured, request));
  request.call.rates.launchUs = launchUs;
  request.call.rates.setKernels(*model, kernelTflops(*this, *model, measured, file, request),
                                model->matrixTflops(request.call.dtype) * efficiency.value_or(kKernelEfficiency));
  return {};
}

void RingRateOptions::addLinks(CLI::App &command, int64_t mostRanks) {
  addValue(
      command, "--links", links, "GBPS[,US]",
      "1e9 bytes per second that a rank sends, and receives, and microseconds of a message [0] [what heddle ring links "
      "measured of such GPUs, in the database]")
      ->check(linkRates());
  CLI::Option *hosts =
      addCount(command, "--host", host, "P",
               "Ranks of a host, consecutive ones, whose links are --host-links [all links are alike]");
  hosts->check(CLI::Range(int64_t(1), mostRanks));
  CLI::Option *linksOfHosts = addValue(command, "--host-links", hostLinks, "GBPS[,US]",
                                       "As --links, between ranks of a host; --links are those beyond it then");
  linksOfHosts->check(linkRates())->needs(hosts);
  addValue(command, "--gpu", gpu, "NAME", "GPU of the rate, of memory and of the number of processors")
      ->capture_default_str()
      ->check(gpuName());
  database.add(command);
}

void RingRateOptions::add(CLI::App &command, int64_t mostRanks) {
  addLinks(command, mostRanks);
  addValue(
      command, "--rate", rate, "TFLOPS",
      "Rate of kernels on kept pairs [of --db: the winner for the pattern on --gpu whose rows keep most nearly as many "
      "keys; else --efficiency of the data sheet]")
      ->check(realBetween(1e-3, 1e6));
  addValue(command, "--efficiency", efficiency, "SHARE",
           "Share of its matrix rate that kernels are assumed to reach, whatever was tuned (default 0.65)")
      ->check(realBetween(0.01, 1));
  addValue(command, "--launch", launchUs, "US",
           "Microseconds that a launch of a plan takes behind a rank's first one, beside what it computes")
      ->capture_default_str()
      ->check(realBetween(0, 1e6));
}

} // namespace heddle::cli
