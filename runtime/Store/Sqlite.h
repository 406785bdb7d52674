//===- Sqlite.h - small owners of sqlite3 handles ---------------------------===//
// Owns connections and prepared statements and turns every result code into a Status. Internal to
// runtime/Store. Text is only ever SQL of this project; values are bound.
#ifndef HEDDLE_RUNTIME_STORE_SQLITE_H
#define HEDDLE_RUNTIME_STORE_SQLITE_H

#include "runtime/Core/DType.h"
#include "runtime/Core/Status.h"

#include <cstdint>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace heddle::sqlite {

// Bytes that go into a BLOB column; std::string goes into TEXT.
struct Blob {
  const std::string &bytes;
};

class Database;

// One prepared statement. Errors of binds are kept and reported by the next step.
class Statement {
public:
  Statement(Statement &&other) noexcept;
  Statement(const Statement &) = delete;
  Statement &operator=(const Statement &) = delete;
  ~Statement();

  Statement &bind(int64_t value);
  Statement &bind(double value); // NaN is stored as infinity: SQLite has no NaN
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
  // `flags` are SQLITE_OPEN_*; `uri` may be a path or file: URI, `path` is what messages show.
  static Result<Database> open(const std::string &uri, const std::string &path, int flags, int busyTimeoutMs);
  Database(Database &&other) noexcept;
  Database &operator=(Database &&other) noexcept;
  ~Database();

  Result<Statement> prepare(const std::string &sql);
  // One or more statements without results or values.
  Status execute(const char *sql);
  Result<int64_t> queryInteger(const char *sql);
  Result<std::string> queryText(const char *sql);
  int64_t changes() const;
  // Ends the transaction, if one is open; failures do not matter and nothing is allocated.
  void rollback() noexcept;

  // The Status for a result code of this connection.
  Status check(int code, const char *operation) const;
  const std::string &path() const { return shownPath; }

private:
  Database(sqlite3 *handle, std::string path) : handle(handle), shownPath(std::move(path)) {}
  sqlite3 *handle = nullptr;
  std::string shownPath;
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

#endif
