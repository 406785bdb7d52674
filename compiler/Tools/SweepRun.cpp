#include "compiler/Session/SweepShard.h"
#include "compiler/Tools/Cache.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Sweep.h"
#include "runtime/Core/CountText.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>
#include <unistd.h>

namespace heddle::cli {
namespace {

struct RunOptions : SweepPlanOptions {
  std::string shard = "0/1", budget = "20s", strategy;
  std::vector<int> gpus;
  int workers = 0;
  DatabaseOptions permissions;
};

std::atomic<bool> interrupted{false};
extern "C" void onSweepInterrupt(int) { interrupted = true; }

/// Who launches the processes of an MPI job tells each its number and how many there are.
Result<Shard> shardOfMpi() {
  for (const auto &[rank, size] : {std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI_RANK", "PMI_SIZE"},
                                   {"SLURM_PROCID", "SLURM_NTASKS"}})
    if (std::getenv(rank) && std::getenv(size))
      return Shard::parse(std::string(std::getenv(rank)) + "/" + std::getenv(size));
  return Status::invalidArgument("--shard=mpi: expected OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID in the "
                                 "environment, as mpirun and srun set them");
}

TuneCommand commandOf(const RunOptions &options, const Shard &shard, size_t gpus) {
  const int processors = int(std::max(1u, std::thread::hardware_concurrency()));
  TuneCommand command;
  command.program = thisProgram();
  command.database = shardDatabase(options.folder, shard);
  command.folder = options.folder;
  command.options = {
      "--budget=" + options.budget, "--end-with=" + std::to_string(getpid()),
      "--workers=" + std::to_string(options.workers > 0 ? options.workers : std::max(1, processors / int(gpus) - 1))};
  if (!options.strategy.empty())
    command.options.push_back("--strategy=" + options.strategy);
  if (options.permissions.forceNetwork)
    command.options.push_back("--db-force-network");
  if (options.permissions.allowForeignWriters)
    command.options.push_back("--db-allow-foreign-writers");
  constexpr double kSetUpSeconds = 300, kOverBudget = 4; // inputs, the final and what compiles when the time is over
  command.limitSeconds = kSetUpSeconds + kOverBudget * *parseSeconds(options.budget);
  return command;
}

/// The number of items that failed.
size_t print(const RunOptions &options, const Shard &shard, const SweepResult &result) {
  size_t failed = 0;
  Json entries = Json::array();
  for (const SweepEntry &entry : result.entries) {
    failed += !entry.isDone;
    entries.push_back({{"item", entry.item},
                       {"done", entry.isDone},
                       {"message", entry.message},
                       {"device", entry.device},
                       {"median_us", entry.medianUs},
                       {"seconds", entry.seconds}});
    if (!options.json)
      std::cout << entry.item << ": "
                << (entry.isDone ? microseconds(entry.medianUs) : "failed: " + inOneLine(entry.message)) << '\n';
  }
  if (options.json)
    printJson(Json{{"shard", shard.str()},
                   {"database", shardDatabase(options.folder, shard)},
                   {"items", result.items},
                   {"known", result.known},
                   {"elsewhere", result.elsewhere},
                   {"interrupted", interrupted.load()},
                   {"entries", entries}});
  else
    std::cout << "shard " << shard.str() << ": " << counted(result.items, "item") << ", " << grouped(result.known)
              << " done before, " << grouped(result.entries.size() - failed) << " now, " << grouped(failed) << " failed"
              << (result.elsewhere ? ", " + grouped(result.elsewhere) + " for GPUs that are not here" : "")
              << (interrupted ? ", interrupted" : "") << '\n';
  return failed;
}

Result<size_t> sweep(const RunOptions &options, const Shard &shard) {
  HEDDLE_ASSIGN(WorkPlan plan, options.load());
  HEDDLE_ASSIGN(std::vector<SweepGpu> gpus, gpusHere(options.gpus));
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error)
    return Status::io("'" + options.folder + "': cannot make the folder: " + error.message());
  const TuneCommand command = commandOf(options, shard, gpus.size());
  ProgressLine progress;
  SweepOptions running;
  running.folder = options.folder;
  running.shard = shard;
  running.gpus = gpus;
  running.cancel = &interrupted;
  running.tune = [&](const TuneItem &item, const SweepGpu &gpu) { return tuneElsewhere(command, item, gpu); };
  running.progress = [&](const SweepProgress &now) {
    progress.show(now.total ? double(now.ended) / double(now.total) : 1,
                  grouped(now.ended) + "/" + counted(now.total, "item") + ", " + grouped(now.failed) + " failed, " +
                      now.last);
  };
  std::signal(SIGINT, onSweepInterrupt);
  std::signal(SIGTERM, onSweepInterrupt);
  Result<SweepResult> result = runShard(plan, running);
  progress.finish();
  HEDDLE_TRY(result.status());
  return print(options, shard, *result);
}

} // namespace

Action addSweepRun(CLI::App &command) {
  auto options = std::make_shared<RunOptions>();
  options->add(command);
  options->addFolder(command);
  command
      .add_option("--shard", options->shard,
                  "I/N: the items whose number leaves I when divided by N; mpi: as the launcher of an MPI job numbers "
                  "this process")
      ->capture_default_str();
  addValue(command, "--gpus", options->gpus, "N", "Numbers of the GPUs to use [all that the driver shows]")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--budget", options->budget, "time for the search of each item: 30, 30s, 2m")
      ->capture_default_str();
  command.add_option("--strategy", options->strategy, "As heddle tune takes it")->check(strategyWords());
  command.add_option("--workers", options->workers, "threads that compile for each GPU [a share of the processors]")
      ->check(CLI::PositiveNumber);
  options->permissions.addPermissions(command);
  return [options] {
    Result<Shard> shard = options->shard == "mpi" ? shardOfMpi() : Shard::parse(options->shard);
    if (!shard)
      return failUsage(shard.status());
    if (Status budget = parseSeconds(options->budget).status(); !budget.isOk())
      return failUsage(budget);
    const Result<size_t> failed = sweep(*options, *shard);
    if (!failed)
      return fail(failed.status());
    return *failed == 0 ? int(Ok) : int(BadInput);
  };
}

} // namespace heddle::cli
