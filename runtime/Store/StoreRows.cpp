#include "runtime/Core/FieldText.h"
#include "runtime/Core/LaunchPlan.h"
#include "runtime/Store/Location.h"
#include "runtime/Store/StoreImpl.h"

#include <ctime>

namespace heddle {
namespace {

using sqlite::Statement;

// A row whose time is 0 was written now.
template <class T> T stamped(T row) {
  if (row.createdUnix == 0)
    row.createdUnix = int64_t(std::time(nullptr));
  return row;
}

// `key` is the first of the extra columns, unless it is empty; the checksum is the other.
template <class T>
Status insertRow(sqlite::Database &database, const std::string &conflict, const std::string &key, const T &row) {
  HEDDLE_ASSIGN(Statement statement, database.prepare(sqlite::insertSql<T>() + " ON CONFLICT " + conflict));
  if (!key.empty())
    statement.bind(key);
  statement.bind(fieldDigest(row));
  sqlite::bindRow(statement, row);
  return statement.run();
}

} // namespace

Status Store::Impl::checkWritable(const std::string &operation) const {
  const std::string what = operation + " store '" + path + "'";
  if (options.mode != StoreMode::readWrite)
    return Status::denied(what + ": it was opened for reading only");
  if (database.hasMoved())
    return Status::denied(what + ": its file was removed, renamed or replaced since it was opened, and nobody would " +
                          "see what is written; open it again");
  return checkOnlyName(database.file(), what);
}

Result<sqlite::Transaction> Store::Impl::beginWriting(Commit commit) {
  HEDDLE_TRY(checkWritable("write to"));
  HEDDLE_ASSIGN(std::string journal, database.queryText("PRAGMA journal_mode"));
  HEDDLE_TRY(database.execute(commit == Commit::inLog && journal == "wal" ? "PRAGMA synchronous = NORMAL"
                                                                          : "PRAGMA synchronous = FULL"));
  HEDDLE_ASSIGN(sqlite::Transaction transaction,
                sqlite::Transaction::begin(database, sqlite::Transaction::Kind::writing));
  HEDDLE_TRY(checkWritable("write to")); // now that nobody else writes
  return transaction;
}

Result<KernelRecord> Store::Impl::readKernel(const std::string &contentKey) {
  HEDDLE_ASSIGN(Statement statement,
                database.prepare("SELECT needs_checksum, checksum, " + sqlite::columnList<KernelRecord>() +
                                 " FROM kernels WHERE content_key = ?"));
  statement.bind(contentKey);
  HEDDLE_ASSIGN(bool hasRow, statement.step());
  if (!hasRow)
    return Status::notFound("store '" + path + "': no kernel with content key " + contentKey);
  std::string needsChecksum, checksum;
  KernelRecord record;
  HEDDLE_TRY(statement.read(0, needsChecksum));
  HEDDLE_TRY(statement.read(1, checksum));
  HEDDLE_TRY(sqlite::readRow(statement, record, 2));
  const bool isSound = checksum == fieldDigest(record) && needsChecksum == fieldDigest(sqlite::needsOf(record)) &&
                       record.contentKey == contentKey;
  if (!isSound)
    return Status::corrupt("store '" + path + "': kernel " + contentKey +
                           " does not match its checksum; restore the file from a copy or tune again into a new one");
  return record;
}

Result<bool> Store::Impl::hasTable(const std::string &name) {
  if (name != sqlite::Table<LinkRecord>::name)
    return true;
  HEDDLE_ASSIGN(const int64_t version, database.queryInteger("PRAGMA user_version"));
  return version > kVersionWithoutLinks;
}

Result<StoreCounts> Store::Impl::readCounts() {
  StoreCounts counts;
  HEDDLE_ASSIGN(counts.kernels, database.queryInteger("SELECT count(*) FROM kernels"));
  HEDDLE_ASSIGN(counts.winners, database.queryInteger("SELECT count(*) FROM winners"));
  HEDDLE_ASSIGN(counts.trials, database.queryInteger("SELECT count(*) FROM trials"));
  HEDDLE_ASSIGN(counts.devices, database.queryInteger("SELECT count(*) FROM devices"));
  HEDDLE_ASSIGN(const bool hasLinks, hasTable(sqlite::Table<LinkRecord>::name));
  if (hasLinks) {
    HEDDLE_ASSIGN(counts.links, database.queryInteger("SELECT count(*) FROM links"));
  }
  HEDDLE_ASSIGN(counts.names, database.queryInteger("SELECT count(*) FROM names"));
  return counts;
}

Status Store::Impl::addKernel(const KernelRecord &record, OnConflict rule) {
  // Equal content keys mean interchangeable kernels.
  const std::string update =
      rule == OnConflict::publish ? "NOTHING" : "UPDATE SET " + sqlite::updateList<KernelRecord>();
  return insertRow(database, "(content_key) DO " + update, fieldDigest(sqlite::needsOf(record)), record);
}

Status Store::Impl::addWinner(const Winner &given, OnConflict rule) {
  const Winner winner = sqlite::asStored(given);
  const char *unless = rule == OnConflict::publish ? " WHERE excluded.is_tuned >= winners.is_tuned" : "";
  return insertRow(database, "(winner_key) DO UPDATE SET " + sqlite::updateList<Winner>() + unless,
                   fieldDigest(static_cast<const WinnerKey &>(winner)), winner);
}

Status Store::Impl::addTrial(const Trial &given) {
  const Trial trial = sqlite::asStored(given);
  return insertRow(database, "(session_key, config_digest) DO UPDATE SET " + sqlite::updateList<Trial>(),
                   Trial::sessionKey(trial), trial);
}

Status Store::Impl::addDevice(const DeviceRecord &device) {
  return insertRow(database, "(device_key) DO UPDATE SET " + sqlite::updateList<DeviceRecord>(),
                   fieldDigest(static_cast<const DeviceIdentity &>(device)), device);
}

Status Store::Impl::addLinks(const LinkRecord &given) {
  const LinkRecord links = sqlite::asStored(given);
  return insertRow(database, "(link_key) DO UPDATE SET " + sqlite::updateList<LinkRecord>(),
                   fieldDigest(static_cast<const LinkKey &>(links)), links);
}

Status Store::Impl::addName(const NameRecord &name) {
  return insertRow(database, "(name) DO UPDATE SET " + sqlite::updateList<NameRecord>(), "", name);
}

namespace {

Status checkPublishable(const KernelRecord &record, const Winner &winner) {
  auto refuse = [&](const std::string &what) {
    return Status::invalidArgument("publish kernel '" + record.contentKey + "': " + what);
  };
  if (record.contentKey.empty() || record.contentKey != winner.contentKey)
    return refuse("expected the winner to name this kernel, got '" + winner.contentKey + "'");
  if (record.cubin.empty() && record.ptx.empty())
    return refuse("expected a cubin or PTX, got neither");
  if (!fieldsEqual(static_cast<const KernelFamily &>(record), static_cast<const KernelFamily &>(winner)))
    return refuse("its pattern, kind, dtype, dims or generator differ from the winner's");
  if (const std::string wrong = wrongNumbers(winner); !wrong.empty())
    return refuse(wrong);
  Result<LaunchPlan> plan = LaunchPlan::parse(record.plan);
  return plan ? Status() : refuse(plan.status().message());
}

} // namespace

Status Store::publish(const KernelRecord &record, const Winner &winner) {
  HEDDLE_TRY(checkPublishable(record, winner));
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction transaction, impl->beginWriting());
  HEDDLE_TRY(impl->addKernel(record, Impl::OnConflict::publish));
  HEDDLE_TRY(impl->addWinner(stamped(winner), Impl::OnConflict::publish));
  return transaction.commit();
}

Result<KernelRecord> Store::kernel(const std::string &contentKey) const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->readKernel(contentKey);
}

Status Store::setName(const NameRecord &name) {
  if (name.name.empty() || name.pattern.empty())
    return Status::invalidArgument("name a pattern: expected a name and a pattern digest, got '" + name.name +
                                   "' and '" + name.pattern + "'");
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction transaction, impl->beginWriting());
  HEDDLE_TRY(impl->addName(stamped(name)));
  return transaction.commit();
}

Result<NameRecord> Store::findName(const std::string &name) const {
  {
    std::lock_guard<std::mutex> lock(impl->mutex);
    HEDDLE_ASSIGN(std::vector<NameRecord> rows,
                  name.empty() ? std::vector<NameRecord>() : impl->readAll<NameRecord>("WHERE name = ?", name));
    if (!rows.empty() && rows.front().name == name)
      return rows.front();
  }
  HEDDLE_ASSIGN(std::vector<NameRecord> all, names());
  std::string known;
  for (const NameRecord &row : all)
    known += (known.empty() ? "" : ", ") + row.name;
  return Status::notFound("store '" + impl->path + "': no pattern is named '" + name + "'; " +
                          (known.empty() ? "it names none" : "it names " + known));
}

Status Store::recordTrial(const Trial &trial) {
  if (trial.configDigest.empty() || trial.outcome.empty())
    return Status::invalidArgument("record trial: expected a configuration digest and an outcome, got '" +
                                   trial.configDigest + "' and '" + trial.outcome + "'");
  if (const std::string wrong = wrongNumbers(trial); !wrong.empty())
    return Status::invalidArgument("record trial '" + trial.config + "': " + trial.outcome + ", " + wrong);
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction transaction, impl->beginWriting(Impl::Commit::inLog));
  HEDDLE_TRY(impl->addTrial(stamped(trial)));
  return transaction.commit();
}

Status Store::recordDevice(const DeviceRecord &device) {
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction transaction, impl->beginWriting(Impl::Commit::inLog));
  HEDDLE_TRY(impl->addDevice(stamped(device)));
  return transaction.commit();
}

Status Store::recordLinks(const LinkRecord &links) {
  if (const std::string wrong = wrongNumbers(links); !wrong.empty())
    return Status::invalidArgument("record links of '" + links.deviceName + "': " + wrong);
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction transaction, impl->beginWriting());
  HEDDLE_TRY(impl->addLinks(stamped(links)));
  return transaction.commit();
}

} // namespace heddle
