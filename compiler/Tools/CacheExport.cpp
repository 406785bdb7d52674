// Writes the winners that are meant, with what belongs to them, to a file of its own that is fit to ship.
#include "compiler/Pattern/Suggest.h"
#include "compiler/Tools/Cache.h"
#include "runtime/Core/CountText.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <set>

namespace heddle::cli {
namespace {

struct ExportOptions {
  DatabaseOptions database;
  std::string output;
  std::vector<std::string> patterns, dtypes;
  RowFilter filter;
  bool noTrials = false, json = false;
};

/// notFound with what there is: the option names something that no row has.
Status checkListed(const Store &store, const char *option, const std::vector<std::string> &given,
                   const std::vector<std::string> &known) {
  std::string listed;
  for (const std::string &one : known)
    listed += (listed.empty() ? "; there is " : ", ") + one;
  for (const std::string &word : given)
    if (std::find(known.begin(), known.end(), word) == known.end())
      return Status::notFound(std::string(option) + ": '" + store.path() + "' has nothing of '" + word + "'" +
                              didYouMean(word, known) + listed);
  return {};
}

/// What rows of any kind have, each once.
template <class Member>
std::vector<std::string> valuesOf(const std::vector<Winner> &winners, const std::vector<Trial> &trials, Member member) {
  std::set<std::string> values;
  for (const Winner &winner : winners)
    values.insert(winner.*member);
  for (const Trial &trial : trials)
    values.insert(trial.*member);
  values.erase("");
  return {values.begin(), values.end()};
}

Status checkNames(const Store &store, const RowFilter &filter) {
  if (filter.kinds.empty() && filter.archs.empty() && filter.deviceNames.empty() && filter.generators.empty())
    return {};
  HEDDLE_ASSIGN(const std::vector<Winner> winners, store.winners());
  HEDDLE_ASSIGN(const std::vector<Trial> trials, store.allTrials());
  const auto check = [&](const char *option, const std::vector<std::string> &given, auto member) {
    return checkListed(store, option, given, valuesOf(winners, trials, member));
  };
  HEDDLE_TRY(check("--kind", filter.kinds, &WinnerKey::kind));
  HEDDLE_TRY(check("--arch", filter.archs, &WinnerKey::arch));
  HEDDLE_TRY(check("--device", filter.deviceNames, &WinnerKey::deviceName));
  return check("--generator", filter.generators, &WinnerKey::generator);
}

/// The digest of a pattern that is named, or whose digest begins so.
Result<std::string> patternDigest(const Store &store, const std::string &word) {
  HEDDLE_ASSIGN(std::vector<Winner> winners, store.winners());
  std::set<std::string> digests;
  for (const Winner &winner : winners)
    if (winner.pattern.compare(0, word.size(), word) == 0)
      digests.insert(winner.pattern);
  Result<NameRecord> named = store.findName(word);
  if (named)
    return named->pattern;
  if (digests.size() > 1)
    return Status::invalidArgument("the digests of " + grouped(digests.size()) + " patterns of '" + store.path() +
                                   "' begin with '" + word + "': give more letters");
  return digests.empty() ? Result<std::string>(named.status()) : Result<std::string>(*digests.begin());
}

/// What the options say, in words of the store. notFound: one names what it has not.
Result<RowFilter> filterOf(const Store &store, const ExportOptions &options) {
  RowFilter filter = options.filter;
  for (const std::string &word : options.patterns) {
    HEDDLE_ASSIGN(std::string digest, patternDigest(store, word));
    filter.patterns.push_back(digest);
  }
  for (const std::string &dtype : options.dtypes)
    filter.dtypes.push_back(*parseDType(dtype));
  std::transform(filter.generators.begin(), filter.generators.end(), filter.generators.begin(), storedGenerator);
  filter.hasTrials = !options.noTrials;
  HEDDLE_TRY(checkNames(store, filter));
  return filter;
}

Status exportRows(const Store &store, const RowFilter &filter, const ExportOptions &options) {
  HEDDLE_ASSIGN(StoreCounts written, store.exportTo(options.output, filter));
  if (options.json)
    printJson(Json{{"database", store.path()}, {"file", options.output}, {"written", countsJson(written)}});
  else
    std::cout << options.output << ": " << countsText(written) << '\n';
  return {};
}

int runExport(const ExportOptions &options) {
  const Result<Store> store = options.database.open(StoreMode::readOnly);
  if (!store)
    return fail(store.status());
  const Result<RowFilter> filter = filterOf(*store, options);
  return filter ? finish(exportRows(*store, *filter, options)) : failNames(filter.status());
}

/// An option that may be given several times, or with values between commas.
void addList(CLI::App &command, const char *name, std::vector<std::string> &values, const char *type,
             const char *help) {
  addValue(command, name, values, type, help)->delimiter(',')->allow_extra_args(false);
}

} // namespace

Action addCacheExport(CLI::App &command) {
  auto options = std::make_shared<ExportOptions>();
  options->database.add(command);
  addValue(command, "-o,--output", options->output, "FILE", "File to write; there must be none of that name")
      ->required();
  addList(command, "--pattern", options->patterns, "NAME",
          "Only patterns of this name, or whose digest begins so; as those below, may be repeated");
  addList(command, "--kind", options->filter.kinds, "KIND", "Only kernels of this kind: forward, backward");
  addValue(command, "--dtype", options->dtypes, "TYPE", "Only kernels of this element type")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(elementNames(&ElementTraits::isOfCalls)));
  addCount(command, "--head-dim", options->filter.headDims, "N", "Only kernels of this head dim")
      ->delimiter(',')
      ->allow_extra_args(false);
  addList(command, "--arch", options->filter.archs, "ARCH",
          "Only winners on GPUs of this architecture, as the driver calls it");
  addValues(command, "--device", options->filter.deviceNames, "NAME", "Only winners on GPUs of this name");
  addList(command, "--generator", options->filter.generators, "NUMBER",
          (std::string("Only what is of ") + kGeneratorNumber).c_str());
  command.add_flag("--tuned", options->filter.onlyTuned, "No winners that stand in untuned");
  command.add_flag("--no-trials", options->noTrials, "No trials: launching needs none");
  addJsonOption(command, options->json);
  return [options] { return runExport(*options); };
}

} // namespace heddle::cli
