// Owns the order of what is asked before a row is read: who may write here, what the file claims to be, what an ended
// process left to undo, and whether the schema is a store's.
#include "runtime/Store/Location.h"
#include "runtime/Store/StoreImpl.h"

#include <sqlite3.h>

#include <algorithm>

namespace heddle {
namespace {

// Whether a file that may be written is to be with a write-ahead log: on this file system.
Result<bool> writesWithLog(const StorePlace &place, const StoreOptions &options) {
  int64_t type = 0;
  if (options.fileSystemType) {
    type = *options.fileSystemType;
  } else {
    HEDDLE_ASSIGN(type, fileSystemType(place.path));
  }
  std::optional<std::string> network = networkFileSystemName(type);
  if (network && !options.forceNetwork)
    return Status::denied(
        "open store '" + place.shown + "' for writing: it lies on " + *network +
        ", where locks cannot be trusted; write to a local file, then merge, or force it if no other machine writes");
  if (place.exists)
    HEDDLE_TRY(checkOnlyName(place.path, "open store '" + place.shown + "' for writing"));
  return !network;
}

Result<sqlite::Database> connect(const StorePlace &place, StoreMode mode, const StoreOptions &options) {
  constexpr int kCommon = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int how = mode == StoreMode::readWrite  ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                  : mode == StoreMode::readOnly ? SQLITE_OPEN_READONLY
                                                : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
  const std::string name = mode == StoreMode::immutable ? fileUri(place.path, "immutable=1") : place.path;
  HEDDLE_ASSIGN(sqlite::Database database,
                sqlite::Database::open(name, place.shown, kCommon | how, {options.busyTimeoutMs, options.onWait}));
  HEDDLE_TRY(database.execute("PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON"));
  return database;
}

// Another connection in the way leaves the mode as it is, which is as safe.
Status setJournal(sqlite::Database &database, bool usesWal, int busyTimeoutMs) {
  constexpr int kPatienceMs = 200;
  const char *wanted = usesWal ? "wal" : "delete";
  HEDDLE_ASSIGN(std::string current, database.queryText("PRAGMA journal_mode"));
  if (current == wanted)
    return {};
  database.setBusyLimit(std::min(kPatienceMs, busyTimeoutMs));
  const Status changed =
      database.queryText(usesWal ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE").status();
  database.setBusyLimit(busyTimeoutMs);
  return changed.code() == StatusCode::io ? Status() : changed;
}

Result<sqlite::Database> openForWriting(const StorePlace &place, const StoreOptions &options) {
  HEDDLE_ASSIGN(const bool usesWal, writesWithLog(place, options));
  HEDDLE_ASSIGN(sqlite::Database database, connect(place, StoreMode::readWrite, options));
  HEDDLE_TRY(createSchema(database));
  HEDDLE_TRY(checkSchema(database));
  HEDDLE_TRY(setJournal(database, usesWal, options.busyTimeoutMs));
  return database;
}

Result<sqlite::Database> openAs(const StorePlace &place, StoreMode mode, const StoreOptions &options, int &code) {
  HEDDLE_ASSIGN(sqlite::Database database, connect(place, mode, options));
  const Status status = checkSchema(database);
  code = status.isOk() ? SQLITE_OK : database.failureCode();
  HEDDLE_TRY(status);
  return database;
}

// Undoes what a process that was killed had begun to write; a connection that only reads may not.
Status undoUnfinished(const StorePlace &place, const StoreOptions &options) {
  auto refused = [&](const Status &why) {
    return Status(why.code(),
                  "open store '" + place.shown + "': " + recoveryAdvice(place) + " (here: " + why.message() + ")");
  };
  if (const Status allowed = writesWithLog(place, options).status(); !allowed.isOk())
    return refused(allowed);
  Result<sqlite::Database> database = connect(place, StoreMode::readWrite, options);
  const Status undone =
      database ? database->queryInteger("SELECT count(*) FROM sqlite_schema").status() : database.status();
  return undone.isOk() || undone.code() == StatusCode::corrupt ? Status() : refused(undone);
}

Result<sqlite::Database> openForReading(const StorePlace &place, const StoreOptions &options) {
  int code = SQLITE_OK;
  Result<sqlite::Database> database = openAs(place, StoreMode::readOnly, options, code);
  if (code == SQLITE_READONLY && hasJournal(place)) {
    HEDDLE_TRY(undoUnfinished(place, options));
    database = openAs(place, StoreMode::readOnly, options, code);
  }
  // A file with a log needs an index beside it, which this process may not make there: without a log, nobody writes.
  const bool cannotMakeIndex = code == SQLITE_CANTOPEN || code == SQLITE_READONLY;
  if (!cannotMakeIndex)
    return database;
  if (const Status whole = checkNoSideFiles(place); !whole.isOk())
    return Status::denied("open store '" + place.shown + "': reading the log '" + place.path +
                          "-wal' takes the right to write in its folder; open it as a user who may, or copy both files "
                          "to a folder of your own");
  return openAs(place, StoreMode::immutable, options, code);
}

// A connection that only reads makes a log and an index where there are none, and may not take them away. One that may
// write does so when it is closed, if nobody else has the file open; of an empty log it writes nothing.
void takeEmptyLogAway(const StorePlace &place, StoreOptions options) {
  options.busyTimeoutMs = 0;
  options.onWait = {};
  if (!hasEmptyLog(place) || !writesWithLog(place, options).isOk())
    return;
  if (Result<sqlite::Database> database = connect(place, StoreMode::readWrite, options))
    static_cast<void>(database->queryInteger("SELECT count(*) FROM sqlite_schema"));
}

// What may be read at all, before SQLite sees the file. True: it is to be taken as one that never changes.
Result<bool> checkBeforeOpening(const StorePlace &place, const StoreOptions &options) {
  if (!place.exists && options.mode != StoreMode::readWrite)
    return Status::notFound("open store '" + place.shown +
                            "': there is no such file; publishing or tuning creates one");
  bool isImmutable = options.mode == StoreMode::immutable;
  if (!options.allowForeignWriters) {
    HEDDLE_ASSIGN(const bool mayAdd, othersMayAddFiles(place));
    if (mayAdd && options.mode == StoreMode::readWrite)
      return Status::denied(
          "open store '" + place.shown +
          "' for writing: other users may put a log or a journal beside it, whose rows would be its own; " +
          "choose a folder that is yours alone, or allow foreign writers explicitly");
    isImmutable |= mayAdd;
  }
  const Status header = place.exists ? checkStoreHeader(place, kStoreVersions) : Status();
  const bool isFresh = header.code() == StatusCode::notFound && options.mode == StoreMode::readWrite;
  if (!isFresh)
    HEDDLE_TRY(header);
  if (isImmutable)
    HEDDLE_TRY(checkNoSideFiles(place));
  return isImmutable;
}

} // namespace

Store::Impl::~Impl() {
  if (options.mode != StoreMode::readOnly)
    return;
  {
    const sqlite::Database closed = std::move(database);
  }
  takeEmptyLogAway({path, file, true}, options);
}

Result<Store> Store::open(const std::string &path, const StoreOptions &options) {
  HEDDLE_ASSIGN(const StorePlace place, findPlace(path));
  HEDDLE_ASSIGN(const bool isImmutable, checkBeforeOpening(place, options));
  int ignored = 0;
  Result<sqlite::Database> database = isImmutable ? openAs(place, StoreMode::immutable, options, ignored)
                                      : options.mode == StoreMode::readWrite ? openForWriting(place, options)
                                                                             : openForReading(place, options);
  HEDDLE_TRY(database.status());
  return Store(std::make_unique<Impl>(path, place.path, options, database.take()));
}

} // namespace heddle
