// Compiles every kernel of a plan into one file, for applications that must not compile at run time.
#include "compiler/Session/KernelShape.h"
#include "compiler/Session/PackSession.h"
#include "compiler/Tools/Cache.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/Sweep.h"
#include "compiler/Tools/Verb.h"
#include "runtime/Core/CountText.h"
#include "runtime/Core/PartFolder.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <iostream>
#include <thread>

namespace heddle::cli {
namespace {

struct PackingOptions {
  std::string plan, output;
  std::vector<std::string> archs, tuned;
  DatabaseOptions permissions;
  int workers = 0;
  bool json = false;
};

Result<WorkPlan> planOf(const PackingOptions &options) {
  HEDDLE_ASSIGN(WorkPlan plan, WorkPlan::load(options.plan));
  if (!options.archs.empty())
    plan.archs = options.archs;
  if (plan.archs.empty() || plan.archs == std::vector<std::string>{"all"}) {
    plan.archs.clear();
    for (const GpuArch *arch : archsOf({"all"}))
      plan.archs.push_back(archName(*arch));
  }
  HEDDLE_TRY(checkPlanNames(plan, options.plan));
  return plan;
}

/// For files in a folder that is this process's alone; who else may write beside it owns the result.
StoreOptions inScratch(StoreMode mode) {
  StoreOptions options;
  options.mode = mode;
  options.allowForeignWriters = true;
  return options;
}

/// The tuned winners of the other databases for what is packed, without their trials.
Status addWinners(Store &store, const PackingOptions &options, const WorkPlan &plan,
                  const std::vector<PackedKernel> &kernels, const PartFolder &scratch) {
  RowFilter filter;
  filter.onlyTuned = true, filter.hasTrials = false;
  filter.dtypes = plan.dtypes;
  for (const PlanPattern &pattern : plan.patterns)
    for (const PlanHeadDims &dims : plan.headDimsOf(pattern))
      filter.headDims.push_back(dims.head);
  for (const PackedKernel &kernel : kernels)
    filter.patterns.push_back(kernel.record.pattern), filter.kinds.push_back(kernel.record.kind);
  for (size_t i = 0, count = filter.kinds.size(); i < count; ++i)
    filter.kinds.push_back(KindText{KindText::parse(filter.kinds[i])->kind, kAccumulator}.str());
  for (size_t i = 0; i < options.tuned.size(); ++i) {
    DatabaseOptions database = options.permissions;
    database.given = options.tuned[i];
    HEDDLE_ASSIGN(Store tuned, database.open(StoreMode::readOnly));
    const std::string chosen = scratch.file("tuned" + std::to_string(i) + ".db");
    Result<StoreCounts> counts = tuned.exportTo(chosen, filter);
    if (!counts && counts.status().code() == StatusCode::notFound) {
      warn("'" + options.tuned[i] + "' has no tuned kernel for anything that is packed");
      continue;
    }
    HEDDLE_TRY(counts.status());
    HEDDLE_TRY(store.merge({chosen}, inScratch(StoreMode::readOnly)).status());
  }
  return {};
}

Json describe(const PackedKernel &kernel) {
  Json json = {{"item", kernel.item.str()}};
  json.update(kernelJson(kernel.record, kernel.cubinBytes, kernel.ptxBytes));
  return json;
}

void report(const PackingOptions &options, const std::vector<PackedKernel> &kernels, const StoreCounts &written) {
  const int64_t bytes = int64_t(std::filesystem::file_size(options.output));
  if (options.json) {
    Json list = Json::array();
    for (const PackedKernel &kernel : kernels)
      list.push_back(describe(kernel));
    printJson(Json{{"file", options.output}, {"bytes", bytes}, {"kernels", list}, {"written", countsJson(written)}});
    return;
  }
  for (const PackedKernel &kernel : kernels)
    std::cout << kernel.item.str() << ": " << grouped(kernel.cubinBytes) << " B cubin, " << grouped(kernel.ptxBytes)
              << " B PTX" << (kernel.record.note.empty() ? "" : "; " + kernel.record.note) << '\n';
  std::cout << options.output << ": " << countsText(written) << ", " << counted(bytes, "byte") << '\n';
}

Status pack(const PackingOptions &options) {
  HEDDLE_ASSIGN(WorkPlan plan, planOf(options));
  std::error_code error;
  const bool isThere = std::filesystem::exists(options.output, error);
  if (error)
    return Status::io("'" + options.output + "': cannot look for a file of that name: " + error.message());
  if (isThere)
    return Status::invalidArgument("'" + options.output + "': there is such a file already");
  HEDDLE_ASSIGN(PartFolder scratch, PartFolder::beside(options.output));
  StoreOptions writing = inScratch(StoreMode::readWrite);
  writing.forceNetwork = options.permissions.forceNetwork;
  HEDDLE_ASSIGN(Store store, Store::open(scratch.file("all.db"), writing));
  ProgressLine progress;
  PackOptions packing;
  packing.workers = options.workers > 0 ? options.workers : int(std::max(1u, std::thread::hardware_concurrency()));
  packing.progress = [&](size_t done, size_t total, const PackItem &last) {
    progress.show(double(done) / double(total), grouped(done) + "/" + counted(total, "kernel") + ", " + last.str());
  };
  Result<std::vector<PackedKernel>> kernels = packInto(store, plan, packing);
  progress.finish();
  HEDDLE_TRY(kernels.status());
  HEDDLE_TRY(addWinners(store, options, plan, *kernels, scratch));
  HEDDLE_ASSIGN(StoreCounts written, store.exportTo(options.output, RowFilter()));
  report(options, *kernels, written);
  return {};
}

} // namespace

Action addPack(CLI::App &command) {
  auto options = std::make_shared<PackingOptions>();
  command
      .add_option("PLAN", options->plan,
                  "Plan file (JSON): patterns, head_dims, dtypes, kinds, precisions, archs; docs/plans.md")
      ->required();
  addValue(command, "-o,--output", options->output, "FILE",
           "File to write, .heddle by custom; there must be none of that name")
      ->required();
  addArchOption(command, options->archs);
  command.get_option("--arch")->description(command.get_option("--arch")->get_description() +
                                            " [those of the plan, else all]");
  addValues(command, "--from", options->tuned, "DB",
            "Database whose tuned kernels for what is packed go in too; may be repeated");
  options->permissions.addPermissions(command);
  command.add_option("--workers", options->workers, "threads that compile [one for each processor]")
      ->check(CLI::PositiveNumber);
  addJsonOption(command, options->json);
  return [options] { return finish(pack(*options)); };
}

} // namespace heddle::cli
