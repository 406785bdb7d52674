//===- StoreUpkeep.cpp - verify, prune, finalise ---------------------===//
#include "runtime/Core/FieldText.h"
#include "runtime/Core/LaunchPlan.h"
#include "runtime/Store/LookupRank.h"
#include "runtime/Store/StoreImpl.h"

#include <map>

namespace heddle {
namespace {

using sqlite::Statement;

// The first column of every row.
Result<std::vector<std::string>> readTexts(sqlite::Database &database, const char *sql) {
  HEDDLE_ASSIGN(Statement statement, database.prepare(sql));
  std::vector<std::string> texts;
  while (true) {
    HEDDLE_ASSIGN(bool hasRow, statement.step());
    if (!hasRow)
      return texts;
    HEDDLE_TRY(statement.read(0, texts.emplace_back()));
  }
}

Result<int64_t> runDelete(sqlite::Database &database, const char *sql, const PruneOptions &options) {
  HEDDLE_ASSIGN(Statement statement, database.prepare(sql));
  statement.bind(options.olderThanUnix).bind(options.keepGenerator);
  HEDDLE_TRY(statement.run());
  return database.changes();
}

} // namespace

Result<VerifyReport> Store::verify() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction snapshot, impl->beginReading());
  VerifyReport report;
  HEDDLE_ASSIGN(std::vector<std::string> findings, readTexts(impl->database, "PRAGMA integrity_check(20)"));
  for (const std::string &finding : findings)
    if (finding != "ok")
      report.problems.push_back("SQLite: " + finding);
  HEDDLE_ASSIGN(report.counts, impl->readCounts());
  HEDDLE_ASSIGN(std::vector<std::string> keys, readTexts(impl->database, "SELECT content_key FROM kernels ORDER BY content_key"));
  HEDDLE_ASSIGN(std::vector<Winner> winners, impl->readAll<Winner>("SELECT " + sqlite::columnList<Winner>() + " FROM winners"));
  std::multimap<std::string, const Winner *> named;
  for (const Winner &winner : winners)
    named.emplace(winner.contentKey, &winner);
  for (const std::string &key : keys) {
    Result<KernelRecord> record = impl->readKernel(key);
    Status plan = record ? LaunchPlan::parse(record->plan).status() : record.status();
    if (!plan.isOk())
      report.problems.push_back((record ? "kernel " + key + ": " : "") + plan.message());
    if (!record)
      continue;
    for (auto [winner, end] = named.equal_range(key); winner != end; ++winner)
      if (!mayName(*winner->second, *record))
        report.problems.push_back("winner " + fieldDigest(static_cast<const WinnerKey &>(*winner->second)) + " names kernel " + key +
                                  ", which computes something else");
  }
  HEDDLE_ASSIGN(std::vector<std::string> orphans,
                readTexts(impl->database, "SELECT winner_key FROM winners WHERE content_key NOT IN (SELECT content_key FROM kernels)"));
  for (const std::string &orphan : orphans)
    report.problems.push_back("winner " + orphan + " names a kernel that is not there");
  return report;
}

Result<StoreCounts> Store::prune(const PruneOptions &options) {
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction transaction, impl->beginWriting());
  StoreCounts gone;
  sqlite::Database &database = impl->database;
  HEDDLE_ASSIGN(gone.trials, runDelete(database, "DELETE FROM trials WHERE created_unix < ?1 OR (?2 <> '' AND generator <> ?2)", options));
  HEDDLE_ASSIGN(gone.winners, runDelete(database, "DELETE FROM winners WHERE created_unix < ?1 OR (?2 <> '' AND generator <> ?2)", options));
  HEDDLE_ASSIGN(gone.kernels, runDelete(database, "DELETE FROM kernels WHERE ?1 = ?1 AND ?2 <> '' AND generator <> ?2", options));
  if (options.dropsUnreferencedKernels) {
    HEDDLE_ASSIGN(int64_t unreferenced,
                  runDelete(database, "DELETE FROM kernels WHERE ?1 = ?1 AND ?2 = ?2 AND content_key NOT IN (SELECT content_key FROM winners)", options));
    gone.kernels += unreferenced;
  }
  if (!options.isDryRun)
    HEDDLE_TRY(transaction.commit());
  return gone;
}

Status Store::finalise() {
  std::lock_guard<std::mutex> lock(impl->mutex);
  if (impl->options.mode != StoreMode::readWrite)
    return Status::denied("finalise store '" + impl->path + "': it was opened for reading only");
  HEDDLE_TRY(impl->database.execute("PRAGMA synchronous = FULL"));
  HEDDLE_ASSIGN(std::string mode, impl->database.queryText("PRAGMA journal_mode = DELETE"));
  if (mode != "delete")
    return Status::io("finalise store '" + impl->path + "': another process has it open; close that one first");
  return impl->database.execute("VACUUM");
}

} // namespace heddle
