// Owns connections and prepared statements and turns every result code into a Status. Internal to
// runtime/Store. Text is only ever SQL of this project; values are bound.
#pragma once

#include "runtime/Core/DType.h"
#include "runtime/Core/Status.h"

#include "runtime/Store/StoreWait.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace heddle::sqlite {

// Bytes that go into a BLOB column; std::string goes into TEXT.
struct Blob {
  const std::string &bytes;
};

// What a real is when it is read back: SQLite has neither a NaN, which becomes infinity, nor a negative zero.
double storedReal(double value);

class Database;

// One prepared statement. Errors of binds are kept and reported by the next step.
class Statement {
public:
  Statement(Statement &&other) noexcept;
  Statement(const Statement &) = delete;
  Statement &operator=(const Statement &) = delete;
  ~Statement();

  Statement &bind(int64_t value);
  Statement &bind(double value); // as storedReal
  Statement &bind(const std::string &value);
  Statement &bind(DType value);
  Statement &bind(Blob value);

  // True: there is a row. False: done.
  Result<bool> step();
  // Runs a statement that gives no rows.
  Status run();
  // Ready for the next binds.
  void reset();

  // Column number `index` of the row; a failure (corrupt) if the stored type is another one.
  Status read(int index, int64_t &value);
  Status read(int index, double &value);
  Status read(int index, std::string &value); // TEXT or BLOB
  Status read(int index, DType &value);

private:
  friend class Database;
  Statement(Database &database, sqlite3_stmt *statement) : database(&database), statement(statement) {}
  Status expectType(int index, int type);

  Database *database;
  sqlite3_stmt *statement;
  int bound = 0;
  int bindError = 0;
};

// One connection. Not thread safe: the Store serialises.
class Database {
public:
  // `flags` are SQLITE_OPEN_*; `uri` may be a path or file: URI, `path` is what messages show. No trigger fires and no
  // view is read, whatever the file has.
  static Result<Database> open(const std::string &uri, const std::string &path, int flags, const BusyRule &busy);
  Database(Database &&other) noexcept;
  Database &operator=(Database &&other) noexcept;
  ~Database();

  Result<Statement> prepare(const std::string &sql);
  // One or more statements without results or values.
  Status execute(const char *sql);
  Result<int64_t> queryInteger(const char *sql);
  Result<std::string> queryText(const char *sql);
  int64_t changes() const;
  // How long other connections are waited for from here on.
  void setBusyLimit(int ms) { waiting->rule.limitMs = ms; }
  // The SQLITE_* code of the last failure, without what its upper bits say in addition.
  int failureCode() const { return lastFailure & 0xff; }
  // Ends the transaction, if one is open; failures do not matter and nothing is allocated.
  void rollback() noexcept;

  // The Status for a result code of this connection.
  Status check(int code, const char *operation) const;
  const std::string &path() const { return shownPath; }
  // As SQLite opened it, without links.
  const std::string &file() const { return waiting->file; }
  // Whether that name leads to this connection's file no more.
  bool hasMoved() const;

private:
  // Of the wait for another connection that goes on, or the last.
  struct Waiting {
    BusyRule rule;
    std::string file, shownPath;
    std::chrono::steady_clock::time_point begin = {};
    int64_t waitedMs = 0;
    bool isSaid = false;
  };
  Database(sqlite3 *handle, std::string path) : handle(handle), shownPath(std::move(path)) {}
  static int onBusy(void *waiting, int calls);
  std::string busyAdvice() const;

  sqlite3 *handle = nullptr;
  std::string shownPath;
  mutable int lastFailure = 0;
  std::unique_ptr<Waiting> waiting; // in one place, which SQLite knows
};

// One transaction; rolled back unless committed. A reading one pins a snapshot, a writing one excludes others.
class Transaction {
public:
  enum class Kind { reading, writing };
  static Result<Transaction> begin(Database &database, Kind kind);
  Transaction(Transaction &&other) noexcept : database(other.database) { other.database = nullptr; }
  Transaction(const Transaction &) = delete;
  Transaction &operator=(const Transaction &) = delete;
  ~Transaction();
  Status commit();

private:
  explicit Transaction(Database &database) : database(&database) {}
  Database *database;
};

} // namespace heddle::sqlite
