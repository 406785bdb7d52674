// Owns the connection and the row operations that several members share. Internal to runtime/Store.
#pragma once

#include "runtime/Store/Location.h"
#include "runtime/Store/Sqlite.h"
#include "runtime/Store/Rows.h"
#include "runtime/Store/Store.h"

#include <mutex>
#include <tuple>

namespace heddle {

struct Store::Impl {
  Impl(const std::string &path, const std::string &file, StoreOptions options, sqlite::Database database)
      : path(path), file(file), options(std::move(options)), database(std::move(database)) {}
  Impl(const Impl &) = delete;
  // Takes the empty log away that reading made, unless others have the store open.
  ~Impl();

  std::string path, file; // as it was given, and as SQLite opened it (StorePlace)
  StoreOptions options;
  std::mutex mutex; // held by every member of Store; the members below expect it held
  sqlite::Database database;

  Result<sqlite::Transaction> beginReading() {
    return sqlite::Transaction::begin(database, sqlite::Transaction::Kind::reading);
  }
  // When a commit returns: on the disk; or in the log where there is one, from which only a loss of power takes rows,
  // the last ones.
  enum class Commit { onDisk, inLog };
  // denied on a handle that was not opened for writing, and where the file has another name by now. `operation`: "write
  // to".
  Status checkWritable(const std::string &operation) const;
  // denied as above.
  Result<sqlite::Transaction> beginWriting(Commit commit = Commit::onDisk);

  // Reads and checks one kernel (promise 4).
  Result<KernelRecord> readKernel(const std::string &contentKey);
  Result<StoreCounts> readCounts();
  // Files of the version before lack one.
  Result<bool> hasTable(const std::string &name);

  // What happens to the row of the same key. `publish` keeps a kernel, and a tuned winner against an untuned one;
  // `replace` keeps nothing. Trials, devices, links and names are always replaced.
  enum class OnConflict { publish, replace };
  Status addKernel(const KernelRecord &record, OnConflict rule);
  Status addWinner(const Winner &winner, OnConflict rule);
  Status addTrial(const Trial &trial);
  Status addDevice(const DeviceRecord &device);
  Status addLinks(const LinkRecord &links);
  Status addName(const NameRecord &name);

  // The rows of T's table that `rest` of the statement asks for, each checked against its checksum (promise 4).
  template <class T> Result<std::vector<T>> readAll(const std::string &rest, const std::string &value = "") {
    HEDDLE_ASSIGN(const bool hasRows, hasTable(sqlite::Table<T>::name));
    if (!hasRows)
      return std::vector<T>();
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

// Owns the version of the schema and the check that a file has this one and nothing else: a trigger, a view or a
// changed column of somebody else's would act where rows are written and read.

// Goes up with every change of schema.sql.
constexpr int64_t kStoreVersion = 5;
constexpr int64_t kVersionWithoutLinks =
    4; // the same, but for a table that such a file gets when it is opened to be written
constexpr StoreVersions kStoreVersions = {kVersionWithoutLinks, kStoreVersion};

// Makes the schema in an empty file, or what it lacks in one of the version before, in one transaction; does nothing if
// there is one. Many processes may do so at once.
Status createSchema(sqlite::Database &database);

// Whether the connection sees a store of this version and nothing else, at one moment. notFound: the file is empty;
// corrupt: it is another application's or not exactly a store; newer, unsupported: a store of another version.
Status checkSchema(sqlite::Database &database);

// Owns the order of lookups within one store and between several. Internal to runtime/Store.

// Whether a winner may name this kernel. The pattern is not compared: texts of two digests may give the same code.
bool mayName(const Winner &winner, const KernelRecord &kernel);

// Match, another architecture, for longer or shorter calls (areAsLong; 1: tuned, 2: untuned), distance of the buckets
// in doublings, untuned: smaller is better. Winners of equal rank serve alike.
using LookupRank = std::tuple<MatchKind, bool, int, int64_t, bool>;
LookupRank lookupRank(const LookupQuery &query, const Winner &winner);

// Of winners of equal rank the one of the nearest problem: smallest distance of the sizes in doublings, then the same
// positions and arguments. Times do not count: they are of different problems.
using LookupOrder = std::tuple<LookupRank, double, bool>;
LookupOrder lookupOrder(const LookupQuery &query, const Winner &winner);

} // namespace heddle
