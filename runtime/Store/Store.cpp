//===- Store.cpp - opening, listing, upkeep ---------------------------------===//
#include "runtime/Store/Store.h"

#include "runtime/Core/LaunchPlan.h"
#include "runtime/Store/Location.h"
#include "runtime/Store/Migrations.h"
#include "runtime/Store/StoreImpl.h"

#include <sqlite3.h>

namespace heddle {
namespace {

// Whether the file system of `path` allows writing with a write-ahead log.
Result<bool> allowsWal(const std::string &path, const StoreOptions &options) {
  int64_t type = 0;
  if (options.fileSystemType) {
    type = *options.fileSystemType;
  } else {
    HEDDLE_ASSIGN(type, fileSystemType(path));
  }
  std::optional<std::string> network = networkFileSystemName(type);
  if (network && !options.forceNetwork)
    return Status::denied("open store '" + path + "' for writing: it lies on " + *network +
                          ", where locks cannot be trusted; write to a local file, then merge, or force it if no other machine writes");
  return !network;
}

Result<sqlite::Database> openDatabase(const std::string &path, const StoreOptions &options) {
  constexpr int kCommon = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  switch (options.mode) {
  case StoreMode::readOnly: return sqlite::Database::open(path, path, kCommon | SQLITE_OPEN_READONLY, options.busyTimeoutMs);
  case StoreMode::readWrite:
    return sqlite::Database::open(path, path, kCommon | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, options.busyTimeoutMs);
  case StoreMode::immutable:
    return sqlite::Database::open(fileUri(path, "immutable=1"), path, kCommon | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, options.busyTimeoutMs);
  }
  return Status::internal("open store '" + path + "': unknown mode");
}

// Another connection in the way leaves the mode as it is, which is as safe.
Status setJournal(sqlite::Database &database, bool usesWal) {
  const char *wanted = usesWal ? "wal" : "delete";
  HEDDLE_ASSIGN(std::string current, database.queryText("PRAGMA journal_mode"));
  if (current != wanted) {
    Result<std::string> changed = database.queryText(usesWal ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE");
    if (!changed && changed.status().code() != StatusCode::io)
      return changed.status();
    current = changed ? *changed : current;
  }
  return {};
}

Status checkBeforeOpening(const std::string &path, const StoreOptions &options) {
  HEDDLE_ASSIGN(bool exists, storeFileExists(path));
  if (!exists && options.mode != StoreMode::readWrite)
    return Status::notFound("open store '" + path + "': there is no such file; publishing or tuning creates one");
  if (!exists)
    return {};
  if (!options.allowForeignWriters)
    HEDDLE_TRY(checkForeignWriters(path));
  Status header = checkStoreHeader(path, newestStoreVersion());
  if (header.isOk() && options.mode == StoreMode::immutable)
    return checkNoSideFiles(path);
  bool isFresh = header.code() == StatusCode::notFound && options.mode == StoreMode::readWrite;
  return isFresh ? Status() : header;
}

} // namespace

Store::Store(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Store::Store(Store &&) noexcept = default;
Store &Store::operator=(Store &&) noexcept = default;
Store::~Store() = default;

const std::string &Store::path() const { return impl->path; }

Result<int64_t> Store::version() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->database.queryInteger("PRAGMA data_version");
}

Result<Store> Store::open(const std::string &path, const StoreOptions &options) {
  HEDDLE_TRY(checkBeforeOpening(path, options));
  bool usesWal = false;
  if (options.mode == StoreMode::readWrite) {
    HEDDLE_ASSIGN(usesWal, allowsWal(path, options));
  }
  HEDDLE_ASSIGN(sqlite::Database database, openDatabase(path, options));
  HEDDLE_TRY(database.execute("PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON"));
  if (options.mode == StoreMode::readWrite) {
    HEDDLE_TRY(migrateStore(database, storeMigrations()));
    HEDDLE_TRY(setJournal(database, usesWal));
  }
  HEDDLE_TRY(prepareToRead(database));
  return Store(std::make_unique<Impl>(path, options, std::move(database)));
}

Result<std::vector<Trial>> Store::trials(const std::string &sessionKey) const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->readAll<Trial>("SELECT " + sqlite::columnList<Trial>() + " FROM trials WHERE session_key = ? ORDER BY created_unix, rowid", sessionKey);
}

Result<std::vector<Trial>> Store::allTrials() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->readAll<Trial>("SELECT " + sqlite::columnList<Trial>() + " FROM trials ORDER BY session_key, created_unix, rowid");
}

Result<std::vector<Winner>> Store::winners() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->readAll<Winner>("SELECT " + sqlite::columnList<Winner>() + " FROM winners ORDER BY pattern, kind, dtype, head_dim, winner_key");
}

Result<std::vector<NameRecord>> Store::names() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->readAll<NameRecord>("SELECT " + sqlite::columnList<NameRecord>() + " FROM names ORDER BY name");
}

Result<std::vector<DeviceRecord>> Store::devices() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->readAll<DeviceRecord>("SELECT " + sqlite::columnList<DeviceRecord>() + " FROM devices ORDER BY device_name, device_key");
}

Result<StoreCounts> Store::counts() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction snapshot, impl->beginReading());
  return impl->readCounts();
}

Result<std::vector<KernelSummary>> Store::kernels() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Statement statement,
                impl->database.prepare("SELECT length(cubin), length(CAST(ptx AS BLOB)), (SELECT count(*) FROM winners w WHERE w.content_key = k.content_key), " +
                                       sqlite::columnList<KernelRecord>("k.") + " FROM kernels k ORDER BY pattern, kind, dtype, head_dim, content_key"));
  std::vector<KernelSummary> rows;
  while (true) {
    HEDDLE_ASSIGN(bool hasRow, statement.step());
    if (!hasRow)
      return rows;
    KernelSummary &row = rows.emplace_back();
    HEDDLE_TRY(statement.read(0, row.cubinBytes));
    HEDDLE_TRY(statement.read(1, row.ptxBytes));
    HEDDLE_TRY(statement.read(2, row.winnerCount));
    HEDDLE_TRY(sqlite::readRow(statement, row.record, 3));
    row.record.cubin.clear();
    row.record.ptx.clear();
  }
}

} // namespace heddle
