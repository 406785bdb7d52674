#include "runtime/Store/Sqlite.h"
#include "runtime/Core/Counters.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <sqlite3.h>

namespace heddle::sqlite {
namespace {

StatusCode codeOf(int code) {
  switch (code & 0xff) {
  case SQLITE_OK:
  case SQLITE_ROW:
  case SQLITE_DONE:
    return StatusCode::ok;
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
  case SQLITE_FORMAT:
    return StatusCode::corrupt;
  case SQLITE_READONLY:
  case SQLITE_PERM:
  case SQLITE_AUTH:
    return StatusCode::denied;
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
  case SQLITE_FULL:
  case SQLITE_IOERR:
  case SQLITE_CANTOPEN:
  case SQLITE_PROTOCOL:
    return StatusCode::io;
  default:
    return StatusCode::internal; // misuse, constraint, out of memory, schema errors
  }
}

const char *adviceOf(int code) {
  switch (code & 0xff) {
  case SQLITE_FULL:
    return "; free some disk space";
  case SQLITE_CANTOPEN:
    return "; the folder must exist and be accessible";
  case SQLITE_READONLY:
    return "; the file and its folder must be writable, or open it read-only";
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
    return "; the file was left as it is, restore it from a copy or tune into a new one";
  default:
    return "";
  }
}

} // namespace

double storedReal(double value) { return std::isnan(value) ? std::numeric_limits<double>::infinity() : value + 0.0; }

Statement::Statement(Statement &&other) noexcept
    : database(other.database), statement(other.statement), bound(other.bound), bindError(other.bindError) {
  other.statement = nullptr;
}

Statement::~Statement() { sqlite3_finalize(statement); }

Statement &Statement::bind(int64_t value) {
  bindError |= sqlite3_bind_int64(statement, ++bound, value);
  return *this;
}

Statement &Statement::bind(double value) {
  bindError |= sqlite3_bind_double(statement, ++bound, storedReal(value));
  return *this;
}

Statement &Statement::bind(const std::string &value) {
  bindError |= sqlite3_bind_text64(statement, ++bound, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

Statement &Statement::bind(DType value) { return bind(std::string(dtypeName(value))); }

Statement &Statement::bind(Blob value) {
  bindError |= sqlite3_bind_blob64(statement, ++bound, value.bytes.data(), value.bytes.size(), SQLITE_TRANSIENT);
  return *this;
}

Result<bool> Statement::step() {
  if (bindError)
    return Status::internal("store '" + database->path() + "': a value could not be bound");
  int code = sqlite3_step(statement);
  if (code == SQLITE_ROW || code == SQLITE_DONE)
    return code == SQLITE_ROW;
  return database->check(code, "access");
}

Status Statement::run() {
  HEDDLE_ASSIGN(bool hasRow, step());
  (void)hasRow;
  reset();
  return {};
}

void Statement::reset() {
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  bound = 0;
  bindError = 0;
}

Status Statement::expectType(int index, int type) {
  if (sqlite3_column_type(statement, index) == type)
    return {};
  return Status::corrupt("store '" + database->path() + "': column " + sqlite3_column_name(statement, index) +
                         " has a value of the wrong type");
}

Status Statement::read(int index, int64_t &value) {
  HEDDLE_TRY(expectType(index, SQLITE_INTEGER));
  value = sqlite3_column_int64(statement, index);
  return {};
}

Status Statement::read(int index, double &value) {
  HEDDLE_TRY(expectType(index, SQLITE_FLOAT));
  value = sqlite3_column_double(statement, index);
  return {};
}

Status Statement::read(int index, std::string &value) {
  if (sqlite3_column_type(statement, index) != SQLITE_BLOB)
    HEDDLE_TRY(expectType(index, SQLITE_TEXT));
  const void *bytes = sqlite3_column_blob(statement, index);
  int count = sqlite3_column_bytes(statement, index);
  value.assign(static_cast<const char *>(bytes ? bytes : ""), size_t(count));
  return {};
}

Status Statement::read(int index, DType &value) {
  std::string name;
  HEDDLE_TRY(read(index, name));
  std::optional<DType> dtype = parseDType(name);
  if (!dtype)
    return Status::corrupt("store '" + database->path() + "': expected a dtype " +
                           elementList(&ElementTraits::isOfCalls) + ", got '" + name + "'");
  value = *dtype;
  return {};
}

Result<Database> Database::open(const std::string &uri, const std::string &path, int flags, const BusyRule &busy) {
  sqlite3 *handle = nullptr;
  int code = sqlite3_open_v2(uri.c_str(), &handle, flags, nullptr);
  Database database(handle, path); // also a failed open gives a handle that must be closed
  if (code != SQLITE_OK)
    return database.check(code, "open");
  sqlite3_extended_result_codes(handle, 1);
  const char *file = sqlite3_db_filename(handle, "main");
  database.waiting = std::make_unique<Waiting>(Waiting{busy, file ? file : "", path});
  sqlite3_busy_handler(handle, onBusy, database.waiting.get());
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  for (int off : {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW})
    sqlite3_db_config(handle, off, 0, nullptr);
  return database;
}

int Database::onBusy(void *argument, int calls) {
  constexpr int kSleepsMs[] = {1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100}, kSaidAfterMs = 1000; // SQLite's own steps
  Waiting &waiting = *static_cast<Waiting *>(argument);
  Counters &counters = Counters::get();
  if (calls == 0)
    counters.storeWaits.times.add();
  if (calls == 0)
    waiting.begin = std::chrono::steady_clock::now(), waiting.isSaid = false;
  waiting.waitedMs =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - waiting.begin).count();
  const int64_t step = std::min<int64_t>(kSleepsMs[std::min<size_t>(size_t(calls), std::size(kSleepsMs) - 1)],
                                         waiting.rule.limitMs - waiting.waitedMs);
  if (step <= 0)
    return 0;
  sqlite3_sleep(int(step));
  counters.storeRetries.add();
  counters.storeWaits.nanoseconds.add(step * 1000000);
  if (!waiting.isSaid && waiting.waitedMs >= kSaidAfterMs && waiting.rule.onWait) {
    waiting.isSaid = true;
    waiting.rule.onWait({waiting.shownPath, lockHolder(waiting.file), waiting.rule.limitMs});
  }
  return 1;
}

std::string Database::busyAdvice() const {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3g s", waiting ? double(waiting->waitedMs) / 1000 : 0.0);
  return "; another process holds the file: " + lockHolder(waiting ? waiting->file : "") + "; waited " + seconds +
         " for its lock: try again when that has ended, or end it";
}

Database::Database(Database &&other) noexcept
    : handle(other.handle), shownPath(std::move(other.shownPath)), lastFailure(other.lastFailure),
      waiting(std::move(other.waiting)) {
  other.handle = nullptr;
}

Database &Database::operator=(Database &&other) noexcept {
  std::swap(handle, other.handle);
  std::swap(shownPath, other.shownPath);
  std::swap(lastFailure, other.lastFailure);
  std::swap(waiting, other.waiting);
  return *this;
}

Database::~Database() { sqlite3_close_v2(handle); }

Result<Statement> Database::prepare(const std::string &sql) {
  sqlite3_stmt *statement = nullptr;
  int code = sqlite3_prepare_v2(handle, sql.c_str(), int(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK)
    return check(code, "access");
  return Statement(*this, statement);
}

Status Database::execute(const char *sql) {
  return check(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr), "access");
}

Result<int64_t> Database::queryInteger(const char *sql) {
  HEDDLE_ASSIGN(Statement statement, prepare(sql));
  HEDDLE_ASSIGN(bool hasRow, statement.step());
  int64_t value = 0;
  if (!hasRow)
    return Status::corrupt("store '" + shownPath + "': expected a row");
  HEDDLE_TRY(statement.read(0, value));
  return value;
}

Result<std::string> Database::queryText(const char *sql) {
  HEDDLE_ASSIGN(Statement statement, prepare(sql));
  HEDDLE_ASSIGN(bool hasRow, statement.step());
  std::string value;
  if (!hasRow)
    return Status::corrupt("store '" + shownPath + "': expected a row");
  HEDDLE_TRY(statement.read(0, value));
  return value;
}

int64_t Database::changes() const { return sqlite3_changes64(handle); }

bool Database::hasMoved() const {
  int moved = 0;
  return sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved;
}

void Database::rollback() noexcept { sqlite3_exec(handle, "ROLLBACK", nullptr, nullptr, nullptr); }

Status Database::check(int code, const char *operation) const {
  StatusCode status = codeOf(code);
  if (status == StatusCode::ok)
    return {};
  lastFailure = code;
  const char *detail = handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  const bool isBusy = (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED;
  return {status, std::string(operation) + " store '" + shownPath + "': " + detail + " (SQLite code " +
                      std::to_string(code) + ")" + (isBusy ? busyAdvice() : adviceOf(code))};
}

Result<Transaction> Transaction::begin(Database &database, Kind kind) {
  HEDDLE_TRY(database.execute(kind == Kind::writing ? "BEGIN IMMEDIATE" : "BEGIN"));
  return Transaction(database);
}

Transaction::~Transaction() {
  // A failed COMMIT or a full disk may have ended the transaction already; that is fine.
  if (database)
    database->rollback();
}

Status Transaction::commit() {
  HEDDLE_TRY(database->execute("COMMIT"));
  database = nullptr;
  return {};
}

} // namespace heddle::sqlite
