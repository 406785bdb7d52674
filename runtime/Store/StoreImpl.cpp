#include "runtime/Store/Store.h"

#include "runtime/Store/StoreImpl.h"

namespace heddle {
Store::Store(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Store::Store(Store &&) noexcept = default;
Store &Store::operator=(Store &&) noexcept = default;
Store::~Store() = default;

const std::string &Store::path() const { return impl->path; }

Result<int64_t> Store::version() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->database.queryInteger("PRAGMA data_version");
}

Result<std::vector<Trial>> Store::trials(const std::string &sessionKey) const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->readAll<Trial>("WHERE session_key = ? ORDER BY created_unix, rowid", sessionKey);
}

Result<std::vector<Trial>> Store::allTrials() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->readAll<Trial>("ORDER BY session_key, created_unix, rowid");
}

Result<std::vector<Winner>> Store::winners() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->readAll<Winner>("ORDER BY pattern, kind, dtype, head_dim, winner_key");
}

Result<std::vector<NameRecord>> Store::names() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->readAll<NameRecord>("ORDER BY name");
}

Result<std::vector<DeviceRecord>> Store::devices() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->readAll<DeviceRecord>("ORDER BY device_name, device_key");
}

Result<std::vector<LinkRecord>> Store::links() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->readAll<LinkRecord>("ORDER BY device_name, hosts, ranks, link_key");
}

Result<StoreCounts> Store::counts() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction snapshot, impl->beginReading());
  return impl->readCounts();
}

Result<std::vector<KernelSummary>> Store::kernels() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Statement statement,
                impl->database.prepare("SELECT length(cubin), length(CAST(ptx AS BLOB)), (SELECT count(*) FROM winners "
                                       "w WHERE w.content_key = k.content_key), " +
                                       sqlite::columnList<KernelRecord>("k.") +
                                       " FROM kernels k ORDER BY pattern, kind, dtype, head_dim, content_key"));
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
