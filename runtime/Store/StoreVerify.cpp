// Owns what is wrong with a file, in sentences that name table and row. A row that cannot be read does not end the
// check, a file that cannot be read does.
#include "runtime/Core/FieldText.h"
#include "runtime/Core/LaunchPlan.h"
#include "runtime/Store/StoreImpl.h"

#include <functional>
#include <map>

namespace heddle {
namespace {

using sqlite::Statement;

// What is wrong with a row whose digest column holds `key`. Empty: nothing.
std::string otherKey(const char *column, const std::string &key, const std::string &expected) {
  return key == expected ? "" : std::string(column) + " is " + key + ", the digest of its columns " + expected;
}

std::string wrongWith(const Winner &winner, const std::string &key) {
  const std::string other = otherKey("winner_key", key, fieldDigest(static_cast<const WinnerKey &>(winner)));
  return other.empty() ? wrongNumbers(winner) : other;
}

std::string wrongWith(const Trial &trial, const std::string &key) {
  if (trial.configDigest.empty() || trial.outcome.empty())
    return "expected a configuration digest and an outcome, got '" + trial.configDigest + "' and '" + trial.outcome +
           "'";
  const std::string other = otherKey("session_key", key, Trial::sessionKey(trial));
  return other.empty() ? wrongNumbers(trial) : other;
}

std::string wrongWith(const DeviceRecord &device, const std::string &key) {
  return otherKey("device_key", key, fieldDigest(static_cast<const DeviceIdentity &>(device)));
}

std::string wrongWith(const LinkRecord &links, const std::string &key) {
  const std::string other = otherKey("link_key", key, fieldDigest(static_cast<const LinkKey &>(links)));
  return other.empty() ? wrongNumbers(links) : other;
}

std::string wrongWith(const NameRecord &name, const std::string &) {
  return name.name.empty() || name.pattern.empty()
             ? "expected a name and a pattern digest, got '" + name.name + "' and '" + name.pattern + "'"
             : "";
}

} // namespace

struct Store::Verifier {
  Impl &impl;
  VerifyReport report;
  std::multimap<std::string, Winner> winners = {}; // by the kernel that they name

  Status run() {
    HEDDLE_TRY(checkPages());
    HEDDLE_ASSIGN(report.counts, impl.readCounts());
    HEDDLE_TRY(checkTable<Winner>());
    HEDDLE_TRY(checkKernels());
    HEDDLE_TRY(checkTable<Trial>());
    HEDDLE_TRY(checkTable<DeviceRecord>());
    HEDDLE_TRY(checkTable<LinkRecord>());
    HEDDLE_TRY(checkTable<NameRecord>());
    return checkOrphans();
  }

private:
  Status eachRow(const std::string &sql, const std::function<void(Statement &row)> &use) {
    HEDDLE_ASSIGN(Statement statement, impl.database.prepare(sql));
    while (true) {
      HEDDLE_ASSIGN(bool hasRow, statement.step());
      if (!hasRow)
        return {};
      use(statement);
    }
  }

  void add(const char *table, int64_t row, const std::string &wrong) {
    if (!wrong.empty())
      report.problems.push_back(std::string(table) + ", row " + std::to_string(row) + ": " + wrong);
  }

  Status checkPages() {
    return eachRow("PRAGMA integrity_check(20)", [&](Statement &row) {
      std::string finding;
      const Status read = row.read(0, finding);
      if (!read.isOk() || finding != "ok")
        report.problems.push_back("SQLite: " + (read.isOk() ? finding : read.message()));
    });
  }

  void keep(const Winner &winner) { winners.emplace(winner.contentKey, winner); }
  template <class T> void keep(const T &) {}

  // Reads every row whole.
  template <class T> Status checkTable() {
    HEDDLE_ASSIGN(const bool hasRows, impl.hasTable(sqlite::Table<T>::name));
    if (!hasRows)
      return {};
    const std::vector<std::string> extras = sqlite::Table<T>::extras();
    const std::string key = extras.size() > 1 ? extras.front() : "''";
    const std::string sql = "SELECT rowid, " + key + ", checksum, " + sqlite::columnList<T>() + " FROM " +
                            sqlite::Table<T>::name + " ORDER BY rowid";
    return eachRow(sql, [&](Statement &statement) {
      int64_t number = 0;
      std::string found, checksum;
      T row;
      Status read = statement.read(0, number);
      if (read.isOk())
        read = statement.read(1, found);
      if (read.isOk())
        read = statement.read(2, checksum);
      if (read.isOk())
        read = sqlite::readRow(statement, row, 3);
      std::string wrong = read.isOk() ? wrongWith(row, found) : read.message();
      if (wrong.empty())
        wrong = otherKey("checksum", checksum, fieldDigest(row));
      add(sqlite::Table<T>::name, number, wrong);
      if (read.isOk())
        keep(row);
    });
  }

  Status checkKernels() {
    return eachRow("SELECT rowid, content_key FROM kernels ORDER BY content_key", [&](Statement &statement) {
      int64_t number = 0;
      std::string key;
      Status read = statement.read(0, number);
      if (read.isOk())
        read = statement.read(1, key);
      add("kernels", number, read.isOk() ? wrongWithKernel(key) : read.message());
    });
  }

  std::string wrongWithKernel(const std::string &key) {
    const Result<KernelRecord> record = impl.readKernel(key);
    if (!record)
      return record.status().message();
    for (auto [winner, end] = winners.equal_range(key); winner != end; ++winner)
      if (!mayName(winner->second, *record))
        report.problems.push_back("winner " + fieldDigest(static_cast<const WinnerKey &>(winner->second)) +
                                  " names kernel " + key + ", which computes something else");
    const Status plan = LaunchPlan::parse(record->plan).status();
    return plan.isOk() ? "" : "kernel " + key + ": " + plan.message();
  }

  Status checkOrphans() {
    return eachRow("SELECT rowid, winner_key FROM winners WHERE content_key NOT IN (SELECT content_key FROM kernels)",
                   [&](Statement &statement) {
                     int64_t number = 0;
                     std::string key;
                     if (statement.read(0, number).isOk() && statement.read(1, key).isOk()) // else named above
                       add("winners", number, "winner " + key + " names a kernel that is not there");
                   });
  }
};

Result<VerifyReport> Store::verify() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction snapshot, impl->beginReading());
  Verifier verifier{*impl, {}};
  HEDDLE_TRY(verifier.run());
  return std::move(verifier.report);
}

} // namespace heddle
