//===- StoreImpl.h - the inside of a Store ----------------------------------===//
// Owns the connection and the row operations that several members share. Internal to runtime/Store.
#ifndef HEDDLE_RUNTIME_STORE_STOREIMPL_H
#define HEDDLE_RUNTIME_STORE_STOREIMPL_H

#include "runtime/Store/Rows.h"
#include "runtime/Store/Store.h"

#include <mutex>

namespace heddle {

struct Store::Impl {
  Impl(std::string path, StoreOptions options, sqlite::Database database)
      : path(std::move(path)), options(std::move(options)), database(std::move(database)) {}

  std::string path;
  StoreOptions options;
  std::mutex mutex; // held by every member of Store; the members below expect it held
  sqlite::Database database;

  Result<sqlite::Transaction> beginReading() {
    return sqlite::Transaction::begin(database, sqlite::Transaction::Kind::reading);
  }
  // When a commit returns: on the disk; or in the log where there is one, from which only a loss of power takes rows,
  // the last ones.
  enum class Commit { onDisk, inLog };
  // denied on a handle that was not opened for writing.
  Result<sqlite::Transaction> beginWriting(Commit commit = Commit::onDisk);

  // Reads and checks one kernel (promise 4).
  Result<KernelRecord> readKernel(const std::string &contentKey);
  Result<StoreCounts> readCounts();

  // What happens to the row of the same key. `publish` keeps a kernel, and a tuned winner against an untuned one;
  // `replace` keeps nothing. Trials, devices and names are always replaced.
  enum class OnConflict { publish, replace };
  Status addKernel(const KernelRecord &record, OnConflict rule);
  Status addWinner(const Winner &winner, OnConflict rule);
  Status addTrial(const Trial &trial);
  Status addDevice(const DeviceRecord &device);
  Status addName(const NameRecord &name);

  // The rows of T's table that `rest` of the statement asks for, each checked against its checksum (promise 4).
  template <class T> Result<std::vector<T>> readAll(const std::string &rest, const std::string &value = "") {
    HEDDLE_ASSIGN(sqlite::Statement statement, database.prepare(sqlite::selectSql<T>() + rest));
    if (!value.empty())
      statement.bind(value);
    std::vector<T> rows;
    while (true) {
      HEDDLE_ASSIGN(bool hasRow, statement.step());
      if (!hasRow)
        return rows;
      HEDDLE_TRY(sqlite::readCheckedRow(statement, rows.emplace_back(), path));
    }
  }
};

} // namespace heddle

#endif
