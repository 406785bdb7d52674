//===- report.cpp - heddle report -----------------------------------------===//
// Writes what databases say as one page for people, or as JSON. Databases are only read; several are read as `heddle
// cache merge` would join them.
//===----------------------------------------------------------------------===//
#include "compiler/Report/Report.h"
#include "compiler/Report/ReportPage.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/ReportInputs.h"
#include "compiler/Tools/Verb.h"
#include "runtime/Core/CountText.h"
#include "runtime/Core/PartFolder.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <iostream>

namespace heddle::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  DatabaseOptions database; ///< its permissions, and the path where none is given
  std::vector<std::string> databases;
  std::string against, output;
  ReportInputs inputs;
  bool json = false;

  std::vector<std::string> paths() const {
    return databases.empty() ? std::vector<std::string>{database.path()} : databases;
  }
  StoreOptions reading() const { return database.options(StoreMode::readOnly); }
};

/// A page must not take the place of what it was made from.
Status checkPage(const ReportOptions &options) {
  HEDDLE_ASSIGN(std::vector<std::string> uses, options.inputs.files());
  const std::vector<std::string> databases = options.paths();
  uses.insert(uses.end(), databases.begin(), databases.end());
  uses.push_back(options.against);
  return checkOutput("-o", options.output, uses);
}

/// Of several files, what a merge makes of them, in a file that goes with the folder.
Result<Store> openAll(const ReportOptions &options, std::optional<PartFolder> &folder) {
  const std::vector<std::string> paths = options.paths();
  if (paths.size() == 1)
    return Store::open(paths.front(), options.reading());
  HEDDLE_ASSIGN(PartFolder made, PartFolder::beside((fs::temp_directory_path() / "merged.db").string()));
  folder.emplace(std::move(made));
  StoreOptions writing;
  writing.mode = StoreMode::readWrite;
  writing.forceNetwork = true; // nobody else knows the file
  HEDDLE_ASSIGN(Store merged, Store::open(folder->file("merged.db"), writing));
  HEDDLE_TRY(merged.merge(paths, options.reading()).status());
  return merged;
}

Result<Json> collect(const ReportOptions &options) {
  std::optional<PartFolder> folder; // goes last
  HEDDLE_ASSIGN(Store store, openAll(options, folder));
  std::optional<Store> against;
  if (!options.against.empty()) {
    HEDDLE_ASSIGN(Store other, Store::open(options.against, options.reading()));
    against.emplace(std::move(other));
  }
  report::ReportRequest request;
  request.store = &store;
  request.against = against ? &*against : nullptr;
  request.databases = options.paths();
  HEDDLE_ASSIGN(request.problems, options.inputs.problems());
  HEDDLE_ASSIGN(request.patternFiles, options.inputs.patternFiles());
  HEDDLE_ASSIGN(report::Report made, report::makeReport(request));
  return report::reportJson(made);
}

Status makeAndWrite(const ReportOptions &options) {
  HEDDLE_ASSIGN(Json data, collect(options));
  if (options.json) {
    printJson(data);
    return {};
  }
  HEDDLE_TRY(writeArtifact(options.output, report::reportPage(data)));
  size_t winners = 0, trials = 0;
  for (const Json &workload : data["workloads"]) {
    winners += workload["has_winner"].get<bool>();
    trials += workload["trials"]["rows"].size();
  }
  if (options.output != "-")
    std::cout << options.output << ": " << counted(data["workloads"].size(), "workload") << ", "
              << counted(winners, "winner") << ", " << counted(trials, "trial") << ", "
              << counted(data["devices"].size(), "GPU") << '\n';
  return {};
}

} // namespace

Action addReport(CLI::App &command) {
  auto options = std::make_shared<ReportOptions>();
  command
      .add_option("--db", options->databases,
                  "Database; may be repeated [$HEDDLE_DB, else heddle/kernels.db in $XDG_CACHE_HOME or ~/.cache]")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      .add_option("--against", options->against,
                  "Another database to compare the winners with: an older one, another machine's")
      ->type_name("FILE");
  options->inputs.add(command);
  options->database.addPermissions(command);
  CLI::Option *output =
      command.add_option("-o,--output", options->output, "Page to write; - is standard output")->type_name("FILE");
  CLI::Option *json = command.add_flag("--json", options->json, "Print the data of the page as JSON instead");
  output->excludes(json);
  return [options] {
    if (options->output.empty() && !options->json)
      return failUsage(Status::invalidArgument("expected -o FILE, or --json"));
    if (Status page = options->json ? Status() : checkPage(*options); !page.isOk())
      return fail(page);
    if (Status name =
            checkEnding("-o", options->output, {".html", ".htm"}, "browsers make them of an .html, by printing it");
        !name.isOk())
      return failUsage(name);
    return finish(makeAndWrite(*options));
  };
}

} // namespace heddle::cli
