#include "runtime/Store/StoreImpl.h"

namespace heddle {
namespace {

using sqlite::Statement;

Result<int64_t> runDelete(sqlite::Database &database, const char *sql, const PruneOptions &options) {
  HEDDLE_ASSIGN(Statement statement, database.prepare(sql));
  statement.bind(options.olderThanUnix).bind(options.keepGenerator);
  HEDDLE_TRY(statement.run());
  return database.changes();
}

} // namespace

Result<StoreCounts> Store::prune(const PruneOptions &options) {
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction transaction, impl->beginWriting());
  StoreCounts gone;
  sqlite::Database &database = impl->database;
  HEDDLE_ASSIGN(
      gone.trials,
      runDelete(database, "DELETE FROM trials WHERE created_unix < ?1 OR (?2 <> '' AND generator <> ?2)", options));
  HEDDLE_ASSIGN(
      gone.winners,
      runDelete(database, "DELETE FROM winners WHERE created_unix < ?1 OR (?2 <> '' AND generator <> ?2)", options));
  HEDDLE_ASSIGN(gone.kernels,
                runDelete(database, "DELETE FROM kernels WHERE ?1 = ?1 AND ?2 <> '' AND generator <> ?2", options));
  if (options.dropsUnreferencedKernels) {
    HEDDLE_ASSIGN(
        int64_t unreferenced,
        runDelete(
            database,
            "DELETE FROM kernels WHERE ?1 = ?1 AND ?2 = ?2 AND content_key NOT IN (SELECT content_key FROM winners)",
            options));
    gone.kernels += unreferenced;
  }
  if (!options.isDryRun)
    HEDDLE_TRY(transaction.commit());
  return gone;
}

Status Store::finalise() {
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_TRY(impl->checkWritable("finalise"));
  HEDDLE_TRY(impl->database.execute("PRAGMA synchronous = FULL"));
  HEDDLE_ASSIGN(std::string mode, impl->database.queryText("PRAGMA journal_mode = DELETE"));
  if (mode != "delete")
    return Status::io("finalise store '" + impl->path + "': another process has it open; close that one first");
  return impl->database.execute("VACUUM");
}

} // namespace heddle
