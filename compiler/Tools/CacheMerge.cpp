// Adds the rows of other databases to one: merge for files among themselves, import for the user's own, which says
// what will change and asks before it does. Nothing is written unless every source can be read whole.
#include "compiler/Tools/Cache.h"
#include "compiler/Tools/Messages.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <unistd.h>

namespace heddle::cli {
namespace {

struct MergeOptions {
  DatabaseOptions database;
  std::vector<std::string> sources;
  bool yes = false, dryRun = false, json = false;

  StoreOptions reading() const { return database.options(StoreMode::readOnly); }
};

Json changeJson(const WinnerChange &change) {
  Json json{{"change", change.ours ? "replaced" : "added"}, {"theirs", winnerJson(change.theirs)}};
  json["ours"] = change.ours ? winnerJson(*change.ours) : Json();
  return json;
}

Json reportJson(const std::string &source, const MergeReport &report) {
  Json json{{"from", source}, {"added", countsJson(report.added)}, {"replaced", countsJson(report.replaced)}};
  json["winners"] = Json::array();
  for (const WinnerChange &change : report.winners)
    json["winners"].push_back(changeJson(change));
  json["names"] = Json::array();
  for (const NameChange &change : report.names)
    json["names"].push_back(
        {{"theirs", rowJson(change.theirs)}, {"ours", change.ours ? rowJson(*change.ours) : Json()}});
  return json;
}

std::string summary(const MergeReport &report, const char *adds, const char *replaces) {
  if (report.isEmpty())
    return "nothing new";
  std::string text = adds + (" " + countsText(report.added));
  return report.replaced.total() ? text + "; " + replaces + " " + countsText(report.replaced) : text;
}

void printChanges(const MergeReport &report, const PatternLabels &labels) {
  for (const WinnerChange &change : report.winners)
    std::cout << (change.ours ? "  ~ " : "  + ") << padded(keyText(change.theirs, labels), 70)
              << (change.ours ? timeText(*change.ours) + " -> " : "") << timeText(change.theirs) << '\n';
  for (const NameChange &change : report.names)
    if (change.ours)
      std::cout << "  ~ the name " << inOneLine(change.theirs.name) << ": pattern "
                << change.ours->pattern.substr(0, 12) << " -> " << change.theirs.pattern.substr(0, 12) << '\n';
}

Status merge(const MergeOptions &options) {
  // a target is not made in vain
  HEDDLE_TRY(Store::previewMerge(options.database.path(), options.sources, options.reading()).status());
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readWrite));
  HEDDLE_ASSIGN(std::vector<MergeReport> reports, store.merge(options.sources, options.reading()));
  Json merged = Json::array();
  for (size_t i = 0; i < reports.size(); ++i) {
    merged.push_back(reportJson(options.sources[i], reports[i]));
    if (!options.json)
      std::cout << options.sources[i] << ": " << summary(reports[i], "added", "replaced") << '\n';
  }
  if (options.json)
    printJson(Json{{"database", store.path()}, {"merged", merged}});
  return {};
}

bool canAsk() { return ::isatty(STDIN_FILENO) && ::isatty(STDERR_FILENO); }

bool agrees() {
  std::cout.flush();
  std::cerr << "Import this? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

Status import(const MergeOptions &options) {
  const std::string &source = options.sources.front(), into = options.database.path();
  HEDDLE_ASSIGN(std::vector<MergeReport> previews, Store::previewMerge(into, options.sources, options.reading()));
  MergeReport preview = std::move(previews.front());
  HEDDLE_ASSIGN(Store store, Store::open(source, options.reading()));
  HEDDLE_ASSIGN(std::vector<NameRecord> names, store.names());
  if (!options.json) {
    printChanges(preview, PatternLabels(names));
    std::cout << source << " into " << into << ": " << summary(preview, "adds", "replaces") << '\n';
  }
  bool changes = !preview.isEmpty() && !options.dryRun;
  if (changes && !options.yes && !agrees()) {
    if (!isQuiet())
      std::cerr << "heddle: nothing was changed\n";
    changes = false;
  }
  if (changes) {
    HEDDLE_ASSIGN(Store target, options.database.open(StoreMode::readWrite));
    HEDDLE_ASSIGN(std::vector<MergeReport> reports, target.merge({source}, options.reading()));
    preview = std::move(reports.front()); // another process may have written in between
    if (!options.json)
      std::cout << "imported\n";
  }
  if (options.json)
    printJson(Json{{"database", into}, {"imported", changes}, {"changes", reportJson(source, preview)}});
  return {};
}

} // namespace

Action addCacheMerge(CLI::App &command) {
  auto options = std::make_shared<MergeOptions>();
  command.add_option("INTO", options->database.given, "Database to add to; made if it is not there")->required();
  command.add_option("FROM", options->sources, "Databases to read; all of them go in, or none")->required();
  options->database.addPermissions(command);
  addJsonOption(command, options->json);
  return [options] { return finish(merge(*options)); };
}

Action addCacheImport(CLI::App &command) {
  auto options = std::make_shared<MergeOptions>();
  options->database.add(command);
  command.add_option("FILE", options->sources, "Database to read")->required()->expected(1);
  CLI::Option *yes = command.add_flag("-y,--yes", options->yes, "Do not ask");
  command.add_flag("--dry-run", options->dryRun, "Only show what would change")->excludes(yes);
  addJsonOption(command, options->json);
  return [options] {
    if (!options->yes && !options->dryRun && !canAsk())
      return failUsage(Status::invalidArgument(
          "expected --yes to import, or --dry-run to see what would change: here is no terminal to ask on"));
    return finish(import(*options));
  };
}

} // namespace heddle::cli
