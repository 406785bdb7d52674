//===- Migrations.cpp -------------------------------------------------------===//
#include "runtime/Store/Migrations.h"

#include "runtime/Store/Location.h"

#include <iterator>

namespace heddle {
namespace {

constexpr char kSchemaSql[] =
#include "runtime/Store/heddle_schema.inc"
    ;

constexpr char kTrialConditionsSql[] = "ALTER TABLE trials ADD COLUMN sm_clock_mhz INTEGER NOT NULL DEFAULT 0;"
                                       "ALTER TABLE trials ADD COLUMN power_watts REAL NOT NULL DEFAULT 0;";

// What shows a file of version i + 1 as one of the newest version, with the names of its tables; each migration appends to
// all of them and adds its own. Shipped files may lie where nobody can write.
const char *const kViewsOfVersion[] = {
    "CREATE TEMP VIEW trials AS SELECT rowid, *, 0 AS sm_clock_mhz, 0.0 AS power_watts FROM main.trials;"};

constexpr const char *kMigrations[] = {kSchemaSql, kTrialConditionsSql};
static_assert(std::size(kViewsOfVersion) + 1 == std::size(kMigrations), "every older version can be read");

struct StoreIdentity {
  int64_t application = 0, version = 0, tables = 0;
  bool isEmpty() const { return application == 0 && version == 0 && tables == 0; }
};

Result<StoreIdentity> readIdentity(sqlite::Database &database) {
  StoreIdentity identity;
  HEDDLE_ASSIGN(identity.application, database.queryInteger("PRAGMA application_id"));
  HEDDLE_ASSIGN(identity.version, database.queryInteger("PRAGMA user_version"));
  HEDDLE_ASSIGN(identity.tables, database.queryInteger("SELECT count(*) FROM sqlite_schema"));
  return identity;
}

// As one moment has it: between two statements another process may create the store.
Result<StoreIdentity> readIdentityAtOnce(sqlite::Database &database) {
  HEDDLE_ASSIGN(sqlite::Transaction snapshot, sqlite::Transaction::begin(database, sqlite::Transaction::Kind::reading));
  return readIdentity(database);
}

Status checkIdentity(const sqlite::Database &database, const StoreIdentity &identity, int64_t newest) {
  std::string name = "open store '" + database.path() + "': ";
  if (identity.application != kStoreApplicationId)
    return Status::corrupt(name + "this SQLite file belongs to another application; it was left as it is");
  if (identity.version > newest)
    return Status::newer(name + "its schema has version " + std::to_string(identity.version) + ", this program knows up to " +
                         std::to_string(newest) + "; update the program, the file was left as it is");
  return {};
}

} // namespace

const std::vector<const char *> &storeMigrations() {
  static const std::vector<const char *> migrations(std::begin(kMigrations), std::end(kMigrations));
  return migrations;
}

Status migrateStore(sqlite::Database &database, const std::vector<const char *> &migrations) {
  int64_t newest = int64_t(migrations.size());
  HEDDLE_ASSIGN(StoreIdentity before, readIdentityAtOnce(database));
  if (!before.isEmpty())
    HEDDLE_TRY(checkIdentity(database, before, newest));
  if (before.version == newest)
    return {};
  HEDDLE_ASSIGN(sqlite::Transaction transaction, sqlite::Transaction::begin(database, sqlite::Transaction::Kind::writing));
  HEDDLE_ASSIGN(StoreIdentity now, readIdentity(database)); // another process may have been faster
  if (!now.isEmpty())
    HEDDLE_TRY(checkIdentity(database, now, newest));
  for (int64_t version = now.version; version < newest; ++version)
    HEDDLE_TRY(database.execute(migrations[size_t(version)]));
  HEDDLE_TRY(database.execute(("PRAGMA application_id = " + std::to_string(kStoreApplicationId)).c_str()));
  HEDDLE_TRY(database.execute(("PRAGMA user_version = " + std::to_string(newest)).c_str()));
  return transaction.commit();
}

Status prepareToRead(sqlite::Database &database) {
  HEDDLE_ASSIGN(StoreIdentity identity, readIdentityAtOnce(database));
  if (identity.isEmpty())
    return Status::notFound("open store '" + database.path() + "': the file is empty");
  HEDDLE_TRY(checkIdentity(database, identity, newestStoreVersion()));
  if (identity.version < 1)
    return Status::corrupt("open store '" + database.path() + "': it has no schema version");
  if (identity.version == newestStoreVersion())
    return {};
  HEDDLE_TRY(database.execute("PRAGMA temp_store = MEMORY"));
  return database.execute(kViewsOfVersion[identity.version - 1]);
}

} // namespace heddle
