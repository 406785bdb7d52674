//===- ModelFit.cpp - heddle model fit ------------------------------------===//
// Fits the parameters of the estimate to recorded tables and says how well it orders each: with all tables, with the
// others only, with the shipped parameters, and without a model.
//===----------------------------------------------------------------------===//
#include "codegen/Target/GpuModel.h"
#include "compiler/Session/CostTraining.h"
#include "compiler/Session/KernelShape.h"
#include "compiler/Io/AtomicFile.h"
#include "compiler/Tools/Model.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/SafeStream.h"
#include "runtime/Core/CountText.h"

#include <iostream>
#include <CLI/CLI.hpp>

#include <cmath>

namespace heddle::cli {
namespace {

struct FitOptions {
  std::vector<std::string> tables;
  std::string output;
  bool json = false;
};

Status addTable(CostTraining &training, const std::string &path, const std::string &output) {
  HEDDLE_ASSIGN(tuner::RecordedTable table, tuner::RecordedTable::load(path));
  HEDDLE_ASSIGN(ModelProblem problem, problemOf(table));
  HEDDLE_TRY(checkOutput("-o", output, problem.files()));
  HEDDLE_ASSIGN(const DeviceIdentity device, deviceOf(table));
  HEDDLE_ASSIGN(const GpuModel *gpu, findGpuModel(device.deviceName));
  HEDDLE_ASSIGN(const GpuArch *arch, findGpuArch(gpu->arch));
  HEDDLE_ASSIGN(LoadedProblem loaded, loadProblem(problem, *arch));
  return training.add(std::move(table), loaded.space, loaded.shape, *gpu);
}

struct NamedReport {
  const char *order;
  tuner::RankReport report;
};

Json regretJson(double regret) { return std::isfinite(regret) ? Json(regret) : Json(); }

std::string percent(double regret) {
  char text[32];
  std::snprintf(text, sizeof text, std::isfinite(regret) ? "%.1f%%" : "none", 100 * regret);
  return text;
}

Json reportJson(const tuner::RankReport &report) {
  return {{"spearman", report.spearman},
          {"regret_top1", regretJson(report.regret1)},
          {"regret_top5", regretJson(report.regret5)},
          {"regret_top10", regretJson(report.regret10)},
          {"first_within_2_percent", report.firstGood}};
}

/// The orders that are compared on each table.
Result<std::vector<std::vector<NamedReport>>> judge(const CostTraining &training, const tuner::CostModel &all) {
  std::vector<std::vector<NamedReport>> result;
  for (size_t i = 0; i < training.size(); ++i) {
    std::vector<NamedReport> &reports = result.emplace_back();
    reports.push_back({"changes", training.rankOfChanges(i)});
    if (const ShippedCosts *shipped = shippedCosts(training.familyName()))
      reports.push_back({"shipped", training.rank(i, shipped->model)});
    if (training.size() > 1) {
      HEDDLE_ASSIGN(tuner::CostFit others, training.fit(i));
      reports.push_back({"others", training.rank(i, others.model)});
    }
    reports.push_back({"all", training.rank(i, all)});
  }
  return result;
}

void print(const CostTraining &training, const tuner::CostFit &fit,
           const std::vector<std::vector<NamedReport>> &judged) {
  printTo(std::cout, "fit of %s: %.3f rms of log time after %s\n", counted(training.size(), "table").c_str(), fit.rms,
          counted(fit.steps, "step").c_str());
  printTo(std::cout, "order of candidates by: changes from the default; the shipped parameters; parameters of the "
                     "other tables; of all\n");
  printTo(std::cout, "  %-9s %8s %9s %9s %9s  %s\n", "", "spearman", "top 1", "top 5", "top 10",
          "tried until one is within 2% of the best");
  for (size_t i = 0; i < judged.size(); ++i) {
    printTo(std::cout, "%s: %s\n", training.table(i).space().name().c_str(),
            training.table(i).fact(kProblemFact).c_str());
    for (const auto &[order, report] : judged[i])
      printTo(std::cout, "  %-9s %8.3f %9s %9s %9s  %zu of %zu\n", order, report.spearman,
              percent(report.regret1).c_str(), percent(report.regret5).c_str(), percent(report.regret10).c_str(),
              report.firstGood, report.trials);
  }
}

Json describe(const CostTraining &training, const tuner::CostFit &fit,
              const std::vector<std::vector<NamedReport>> &judged) {
  Json json = {{"rms_log", fit.rms}, {"steps", fit.steps}, {"tables", Json::array()}, {"parameters", Json::object()}};
  for (const auto *list : {&fit.model.terms, &fit.model.factors})
    for (const tuner::CostParameter &parameter : *list)
      json["parameters"][parameter.name] = parameter.value;
  for (size_t i = 0; i < judged.size(); ++i) {
    Json table = {{"table", training.table(i).space().name()},
                  {"problem", training.table(i).fact(kProblemFact)},
                  {"trials", training.table(i).trials().size()},
                  {"orders", Json::object()}};
    for (const auto &[order, report] : judged[i])
      table["orders"][order] = reportJson(report);
    json["tables"].push_back(table);
  }
  return json;
}

Status fitTables(const FitOptions &options) {
  HEDDLE_TRY(checkOutput("-o", options.output, options.tables));
  CostTraining training;
  for (const std::string &path : options.tables)
    HEDDLE_TRY(addTable(training, path, options.output));
  HEDDLE_ASSIGN(tuner::CostFit fit, training.fit(std::nullopt));
  HEDDLE_ASSIGN(std::vector<std::vector<NamedReport>> judged, judge(training, fit.model));
  if (!options.output.empty())
    HEDDLE_TRY(writeFileAtomically(options.output, fit.model.text()));
  if (options.json)
    printJson(describe(training, fit, judged));
  else
    print(training, fit, judged);
  return {};
}

} // namespace

Action addModelFit(CLI::App &command) {
  auto options = std::make_shared<FitOptions>();
  command.add_option("TABLES", options->tables, "Tables that `heddle model table` wrote, of one GPU or several")
      ->required();
  addValue(command, "-o,--output", options->output, "FILE",
           "File for the parameters, as --model of `heddle tune` takes them");
  addJsonOption(command, options->json);
  return [options] { return finish(fitTables(*options)); };
}

} // namespace heddle::cli
