// Owns merging, its preview and exporting: one walk over the rows of a source, which writes or only counts.
// What stays of two rows of one key is decided by RowOrder.h.
#include "runtime/Core/LaunchPlan.h"
#include "runtime/Core/PartFolder.h"
#include "runtime/Store/RowOrder.h"
#include "runtime/Store/StoreImpl.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle {
namespace {

// A kernel row without reading its code. Of two rows of one content key, which are interchangeable, the one with
// more code stays, then that of the larger checksum.
struct KernelFacts {
  int64_t hasCubin = 0, hasPtx = 0;
  std::string checksum;
  bool operator<(const KernelFacts &other) const {
    return std::tie(hasCubin, hasPtx, checksum) < std::tie(other.hasCubin, other.hasPtx, other.checksum);
  }
};

Result<std::map<std::string, KernelFacts>> readKernelFacts(sqlite::Database &database) {
  HEDDLE_ASSIGN(
      sqlite::Statement statement,
      database.prepare("SELECT content_key, length(cubin) > 0, length(CAST(ptx AS BLOB)) > 0, checksum FROM kernels"));
  std::map<std::string, KernelFacts> all;
  while (true) {
    HEDDLE_ASSIGN(bool hasRow, statement.step());
    if (!hasRow)
      return all;
    std::string key;
    KernelFacts facts;
    HEDDLE_TRY(statement.read(0, key));
    HEDDLE_TRY(statement.read(1, facts.hasCubin));
    HEDDLE_TRY(statement.read(2, facts.hasPtx));
    HEDDLE_TRY(statement.read(3, facts.checksum));
    all.emplace(std::move(key), std::move(facts));
  }
}

std::string keyOf(const Winner &winner) { return fieldDigest(static_cast<const WinnerKey &>(winner)); }
std::string keyOf(const Trial &trial) { return Trial::sessionKey(trial) + trial.configDigest; }
std::string keyOf(const DeviceRecord &device) { return fieldDigest(static_cast<const DeviceIdentity &>(device)); }
std::string keyOf(const LinkRecord &links) { return fieldDigest(static_cast<const LinkKey &>(links)); }
std::string keyOf(const NameRecord &name) { return name.name; }

bool isSameFile(const std::string &a, const std::string &b) {
  struct stat first, second;
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

Status checkSources(const std::string &into, const std::vector<std::string> &sources) {
  for (size_t i = 0; i < sources.size(); ++i) {
    if (isSameFile(into, sources[i]))
      return Status::invalidArgument("merge store '" + sources[i] +
                                     "': expected another file than the one merged into");
    for (size_t j = 0; j < i; ++j)
      if (isSameFile(sources[j], sources[i]))
        return Status::invalidArgument("merge store '" + sources[i] + "': it is given twice" +
                                       (sources[j] == sources[i] ? "" : ", also as '" + sources[j] + "'"));
  }
  return {};
}

StoreOptions forReading(StoreOptions options) {
  if (options.mode == StoreMode::readWrite)
    options.mode = StoreMode::readOnly;
  return options;
}

bool contains(const std::vector<std::string> &list, const std::string &value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

// Some file systems do not rename so; a second name of the file is as safe, where files may have two.
int renameToNew(const std::string &path, const std::string &target) {
  if (::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0)
    return 0;
  const bool isKnown = errno != EINVAL && errno != ENOSYS;
  if (isKnown)
    return -1;
  if (::link(path.c_str(), target.c_str()) == 0)
    return 0;
  const bool hasLinks = errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS;
  return hasLinks ? -1 : ::rename(path.c_str(), target.c_str());
}

// invalidArgument: somebody else was faster, whose file stays.
Status takeName(const std::string &path, const std::string &target) {
  if (renameToNew(path, target) == 0)
    return {};
  if (errno == EEXIST)
    return Status::invalidArgument("export to '" + target +
                                   "': another process made that file meanwhile; it stays as it is");
  return Status::io("export to '" + target + "': cannot give the file its name: " + std::strerror(errno));
}

Status checkExportTarget(const std::string &path) {
  for (const char *suffix : {"", "-wal", "-journal"}) {
    struct stat facts;
    if (::lstat((path + suffix).c_str(), &facts) == 0)
      return Status::invalidArgument("export to '" + path + "': '" + path + suffix +
                                     "' is there already; remove it, or merge into it");
  }
  return {};
}

} // namespace

bool RowFilter::accepts(const WinnerKey &key) const {
  return contains(patterns, key.pattern) && contains(kinds, key.kind) && contains(archs, key.arch) &&
         contains(deviceNames, key.deviceName) && contains(generators, key.generator) &&
         (dtypes.empty() || std::find(dtypes.begin(), dtypes.end(), key.dtype) != dtypes.end()) &&
         (headDims.empty() || std::find(headDims.begin(), headDims.end(), key.headDim) != headDims.end());
}

// One walk from a source, in whose reading transaction it happens, into a store in whose transaction it happens.
struct Store::Merger {
  Impl &from;
  Impl *into; // null: an empty store
  bool writes;
  const RowFilter *filter; // null: everything
  MergeReport report;
  std::set<std::string> devices = {}, deviceNames = {}, patterns = {}; // of the winners and trials that are meant

  Status run() {
    HEDDLE_ASSIGN(std::vector<Winner> winners,
                  from.readAll<Winner>("ORDER BY pattern, kind, dtype, head_dim, winner_key"));
    if (filter)
      winners.erase(std::remove_if(winners.begin(), winners.end(), [&](const Winner &row) { return !accepts(row); }),
                    winners.end());
    HEDDLE_TRY(mergeKernels(winners));
    HEDDLE_TRY(mergeWinners(winners));
    if (!filter || filter->hasTrials)
      HEDDLE_TRY(mergeTrials());
    HEDDLE_TRY(mergeDevices());
    HEDDLE_TRY(mergeLinks());
    return mergeNames();
  }

private:
  bool accepts(const Winner &winner) const { return filter->accepts(winner) && (winner.isTuned || !filter->onlyTuned); }

  void note(const WinnerKey &key) {
    devices.insert(fieldDigest(static_cast<const DeviceIdentity &>(key)));
    deviceNames.insert(key.deviceName);
    patterns.insert(key.pattern);
  }

  // The rows of the target, by key.
  template <class T> Result<std::map<std::string, T>> rowsOfTarget() {
    std::map<std::string, T> rows;
    if (!into)
      return rows;
    HEDDLE_ASSIGN(std::vector<T> all, into->readAll<T>("ORDER BY rowid"));
    for (T &row : all)
      rows.emplace(keyOf(row), std::move(row));
    return rows;
  }

  // Tells whether `theirs` goes in, and counts it; `ours` is the row of its key that it replaces.
  template <class T> bool takes(const T &theirs, const T *ours, int64_t StoreCounts::*count) {
    if (ours && !isBetter(theirs, *ours))
      return false;
    // named, since g++ 12 applies .* to a copy of (a ? b : c)
    StoreCounts &counts = ours ? report.replaced : report.added;
    counts.*count += 1;
    return true;
  }

  template <class T> static const T *find(const std::map<std::string, T> &rows, const std::string &key) {
    auto found = rows.find(key);
    return found == rows.end() ? nullptr : &found->second;
  }

  Status mergeKernels(const std::vector<Winner> &winners) {
    HEDDLE_ASSIGN(auto theirs, readKernelFacts(from.database));
    std::map<std::string, KernelFacts> ours;
    if (into) {
      HEDDLE_ASSIGN(ours, readKernelFacts(into->database));
    }
    std::set<std::string> wanted;
    for (const Winner &winner : winners) {
      if (!theirs.count(winner.contentKey))
        return Status::corrupt("store '" + from.path + "': winner " + keyOf(winner) +
                               " names a kernel that is not there");
      wanted.insert(winner.contentKey);
    }
    for (const auto &[key, facts] : theirs) {
      const KernelFacts *mine = find(ours, key);
      if ((filter && !wanted.count(key)) || (mine && !(*mine < facts)))
        continue;
      HEDDLE_ASSIGN(KernelRecord record, from.readKernel(key));
      HEDDLE_TRY(checkCode(record));
      (mine ? report.replaced : report.added).kernels += 1;
      if (writes)
        HEDDLE_TRY(into->addKernel(record, Impl::OnConflict::replace));
    }
    return {};
  }

  Status checkCode(const KernelRecord &record) const {
    std::string prefix = "store '" + from.path + "': kernel " + record.contentKey + ": ";
    if (record.cubin.empty() && record.ptx.empty())
      return Status::corrupt(prefix + "expected a cubin or PTX, got neither");
    Result<LaunchPlan> plan = LaunchPlan::parse(record.plan);
    return plan ? Status() : Status::corrupt(prefix + plan.status().message());
  }

  Status mergeWinners(const std::vector<Winner> &winners) {
    HEDDLE_ASSIGN(auto ours, rowsOfTarget<Winner>());
    for (const Winner &winner : winners) {
      note(winner);
      const Winner *mine = find(ours, keyOf(winner));
      if (!takes(winner, mine, &StoreCounts::winners))
        continue;
      report.winners.push_back({winner, mine ? std::optional<Winner>(*mine) : std::nullopt});
      if (writes)
        HEDDLE_TRY(into->addWinner(winner, Impl::OnConflict::replace));
    }
    return {};
  }

  Status mergeTrials() {
    HEDDLE_ASSIGN(std::vector<Trial> trials, from.readAll<Trial>("ORDER BY session_key, created_unix, rowid"));
    HEDDLE_ASSIGN(auto ours, rowsOfTarget<Trial>());
    for (const Trial &trial : trials) {
      if (filter && !filter->accepts(trial))
        continue;
      note(trial);
      if (takes(trial, find(ours, keyOf(trial)), &StoreCounts::trials) && writes)
        HEDDLE_TRY(into->addTrial(trial));
    }
    return {};
  }

  Status mergeDevices() {
    HEDDLE_ASSIGN(std::vector<DeviceRecord> all, from.readAll<DeviceRecord>("ORDER BY device_key"));
    HEDDLE_ASSIGN(auto ours, rowsOfTarget<DeviceRecord>());
    for (const DeviceRecord &device : all)
      if ((!filter || devices.count(keyOf(device))) &&
          takes(device, find(ours, keyOf(device)), &StoreCounts::devices) && writes)
        HEDDLE_TRY(into->addDevice(device));
    return {};
  }

  Status mergeLinks() {
    HEDDLE_ASSIGN(std::vector<LinkRecord> all, from.readAll<LinkRecord>("ORDER BY link_key"));
    HEDDLE_ASSIGN(auto ours, rowsOfTarget<LinkRecord>());
    for (const LinkRecord &links : all)
      if ((!filter || deviceNames.count(links.deviceName)) &&
          takes(links, find(ours, keyOf(links)), &StoreCounts::links) && writes)
        HEDDLE_TRY(into->addLinks(links));
    return {};
  }

  Status mergeNames() {
    HEDDLE_ASSIGN(std::vector<NameRecord> names, from.readAll<NameRecord>("ORDER BY name"));
    HEDDLE_ASSIGN(auto ours, rowsOfTarget<NameRecord>());
    for (const NameRecord &name : names) {
      const NameRecord *mine = find(ours, keyOf(name));
      if ((filter && !patterns.count(name.pattern)) || !takes(name, mine, &StoreCounts::names))
        continue;
      report.names.push_back({name, mine ? std::optional<NameRecord>(*mine) : std::nullopt});
      if (writes)
        HEDDLE_TRY(into->addName(name));
    }
    return {};
  }
};

Result<std::vector<MergeReport>> Store::merge(const std::vector<std::string> &paths, const StoreOptions &options) {
  HEDDLE_TRY(checkSources(impl->path, paths));
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction transaction, impl->beginWriting());
  std::vector<MergeReport> reports;
  for (const std::string &path : paths) { // one after the other: there may be more than descriptors
    HEDDLE_ASSIGN(Store source, Store::open(path, forReading(options)));
    HEDDLE_ASSIGN(sqlite::Transaction snapshot, source.impl->beginReading());
    Merger merger{*source.impl, impl.get(), /*writes=*/true, nullptr, {}};
    HEDDLE_TRY(merger.run());
    reports.push_back(std::move(merger.report));
  }
  HEDDLE_TRY(transaction.commit());
  return reports;
}

Result<std::vector<MergeReport>> Store::previewMerge(const std::string &into, const std::vector<std::string> &paths,
                                                     const StoreOptions &options) {
  HEDDLE_TRY(checkSources(into, paths));
  Result<Store> target = Store::open(into, forReading(options));
  std::optional<sqlite::Transaction> pinned;
  if (target) {
    HEDDLE_ASSIGN(sqlite::Transaction begun, target->impl->beginReading());
    pinned.emplace(std::move(begun));
  } else if (target.status().code() != StatusCode::notFound) { // no file, and one without bytes, become a store
    return target.status();
  }
  std::vector<MergeReport> reports;
  for (const std::string &path : paths) {
    HEDDLE_ASSIGN(Store source, Store::open(path, forReading(options)));
    HEDDLE_ASSIGN(sqlite::Transaction snapshot, source.impl->beginReading());
    Merger merger{*source.impl, target ? target->impl.get() : nullptr, /*writes=*/false, nullptr, {}};
    HEDDLE_TRY(merger.run());
    reports.push_back(std::move(merger.report));
  }
  return reports;
}

Result<StoreCounts> Store::exportTo(const std::string &path, const RowFilter &filter) const {
  HEDDLE_TRY(checkExportTarget(path));
  const Result<PartFolder> folder = PartFolder::beside(path);
  if (!folder)
    return Status(folder.status().code(), "export to " + folder.status().message());
  const std::string part = folder->file("part.db");
  StoreOptions writing;
  writing.mode = StoreMode::readWrite;
  // Nobody else has the folder, and who may write beside it owns the result.
  writing.forceNetwork = writing.allowForeignWriters = true;
  Result<Store> target = Store::open(part, writing);
  if (!target)
    return Status(target.status().code(), "export to '" + path + "': " + target.status().message());
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction snapshot, impl->beginReading());
  HEDDLE_ASSIGN(sqlite::Transaction transaction, target->impl->beginWriting());
  Merger merger{*impl, target->impl.get(), /*writes=*/true, &filter, {}};
  HEDDLE_TRY(merger.run());
  if (merger.report.added.winners + merger.report.added.trials == 0)
    return Status::notFound("export from '" + impl->path + "': no winner and no trial is meant; nothing was written");
  HEDDLE_TRY(transaction.commit());
  HEDDLE_TRY(target->finalise());
  target = Status::notFound("closed");
  HEDDLE_TRY(takeName(part, path));
  return merger.report.added;
}

} // namespace heddle
