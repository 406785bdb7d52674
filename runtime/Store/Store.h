// Owns the SQLite file of user databases, shipped files and packed .heddle files. Promises, each with a
// test of the same number in tests/unit/store*_test.cpp:
//  1. A winner and its kernel appear together or not at all, also when the process is killed.
//  2. Any number of threads and processes may read and write one file; nobody reads a half-written row.
//  3. A file that is corrupt, truncated, foreign, of another version or with another schema is refused with a status
//     and never changed, but that whoever opens it undoes what a killed process had begun to write.
//  4. Every kernel with its code, winner, trial, device and name is checked against its SHA-256 before it is returned.
//  5. On network file systems writing is refused unless forced.
//  6. A file that others may write, or put side files to, is refused unless allowed: a cubin is code.
//  7. A lookup says how it matched; it never returns code that cannot run on the asking architecture.
//  8. Only rows that were published are read back, unchanged.
//  9. What publish, setName and merge reported a loss of power does not take away. It may take the last trials and
//  devices.
// 10. A file is written by its only name: with several (hard links), or once its name leads elsewhere, writing is
//  refused, also on a store that is open. Each name would have a log of its own.
// 11. No row is written or read whose times and errors no measurement can have given.
#pragma once

#include "runtime/Core/KernelRecord.h"
#include "runtime/Core/LinkRecord.h"
#include "runtime/Core/Status.h"
#include "runtime/Store/Exchange.h"
#include "runtime/Store/StoreWait.h"

#include <memory>
#include <optional>
#include <vector>

namespace heddle {

enum class StoreMode {
  readOnly,  // the file must exist; sees later commits of other processes
  readWrite, // created if missing; the folder must exist
  immutable, // the file must exist and never change: no locks, no side files, any file system
};

struct StoreOptions {
  StoreMode mode = StoreMode::readOnly;
  bool allowForeignWriters = false;                   // accept a file that other users may write
  bool forceNetwork = false;                          // write on a network file system (rollback journal, slow)
  int busyTimeoutMs = 10000;                          // how long to wait for other writers
  std::function<void(const StoreWait &)> onWait = {}; // called in a wait that has taken a second, once; may be empty
  // The file system type to assume instead of asking statfs: for mounts whose type misleads, and tests.
  std::optional<int64_t> fileSystemType;
};

// Whom a lookup is for. An empty generator accepts every generator; a negative bucket field and a size of 0 are unknown
// and cost nothing; driverVersion 0 accepts every min_driver.
struct LookupQuery : WinnerKey {
  int64_t driverVersion = 0;
  LookupQuery() = default;
  LookupQuery(const WinnerKey &key, int64_t driverVersion = 0) : WinnerKey(key), driverVersion(driverVersion) {}
};

// match == none: record and winner are empty.
struct StoreLookup {
  MatchKind match = MatchKind::none;
  KernelRecord record;
  Winner winner;
  bool isForBucket = true; // every problem of the bucket gets this answer
};

// A stored kernel without its code.
struct KernelSummary {
  KernelRecord record; // cubin and ptx empty
  int64_t cubinBytes = 0;
  int64_t ptxBytes = 0;
  int64_t winnerCount = 0; // rows that refer to it
};

// Rows that are not selected by any condition stay. Conditions combine with "or".
struct PruneOptions {
  int64_t olderThanUnix = 0; // winners and trials created before; 0: none
  std::string keepGenerator; // winners, trials and kernels of other generators go; empty: none
  bool dropsUnreferencedKernels = true;
  bool isDryRun = false; // count only
};

struct VerifyReport {
  StoreCounts counts;
  std::vector<std::string> problems; // one sentence each; empty: sound
};

// A move-only handle on one open file. All members are thread safe; one handle serialises its callers.
// Failures: io (busy, disk full, unreadable), corrupt, denied (written through a read-only handle).
class Store {
public:
  static Result<Store> open(const std::string &path, const StoreOptions &options = {});
  Store(Store &&) noexcept;
  Store &operator=(Store &&) noexcept;
  ~Store();

  const std::string &path() const;
  // Differs from what this handle said before if another handle or process has committed meanwhile.
  Result<int64_t> version() const;

  // One transaction. The kernel is added unless its content key is there. The winner replaces the row
  // of the same key, except that an untuned one never replaces a tuned one.
  Status publish(const KernelRecord &record, const Winner &winner);

  // `match` none if nothing fits; a failure only if the file cannot be read. Ranking: exact; tuned on the
  // same device, nearest bucket; tuned on the same architecture; untuned or tuned elsewhere but able to
  // run; tuned for longer or shorter calls (ProblemBucket::areAsLong); a default of such calls. Ties go to the nearest
  // bucket, in it to the nearest problem, then to the newest row.
  Result<StoreLookup> lookup(const LookupQuery &query) const;
  // The kernel with this content key; notFound if absent.
  Result<KernelRecord> kernel(const std::string &contentKey) const;

  // A name is replaced by a later one of the same spelling.
  Status setName(const NameRecord &name);
  Result<NameRecord> findName(const std::string &name) const; // notFound lists the names there are

  // Replaces the trial of the same session and configuration.
  Status recordTrial(const Trial &trial);
  // All trials of one session (Trial::sessionKey), oldest first.
  Result<std::vector<Trial>> trials(const std::string &sessionKey) const;

  Status recordDevice(const DeviceRecord &device);
  // Replaces what was measured of as many ranks on as many hosts with such GPUs.
  Status recordLinks(const LinkRecord &links);

  Result<std::vector<KernelSummary>> kernels() const;
  Result<std::vector<Winner>> winners() const;
  Result<std::vector<Trial>> allTrials() const;
  Result<std::vector<NameRecord>> names() const;
  Result<std::vector<DeviceRecord>> devices() const;
  Result<std::vector<LinkRecord>> links() const; // by device, hosts, ranks
  Result<StoreCounts> counts() const;

  // SQLite's own check, every row of every table read whole, all checksums and keys, plans that parse, winners with
  // their kernels.
  Result<VerifyReport> verify() const;
  // Counts what went, or would go.
  Result<StoreCounts> prune(const PruneOptions &options);
  // Adds everything of the files at `paths` (opened read-only, with `options` otherwise) in one transaction: all
  // of them or, where one cannot be read whole, nothing; one report for each. Of two tuned winners of one key, so
  // of one problem, the faster stays, a tuned one before an untuned one; of two trials of one configuration, two
  // devices, two links and two names the newer. What the merged file holds depends neither on order nor on grouping,
  // and merging again changes nothing. The other files stay as they are. invalidArgument if a file is given twice or
  // is this one.
  Result<std::vector<MergeReport>> merge(const std::vector<std::string> &paths, const StoreOptions &options = {});
  // What merging each of the files by itself into the one at `into`, which need not exist, would do; the same
  // failures as merge. Changes nothing.
  static Result<std::vector<MergeReport>> previewMerge(const std::string &into, const std::vector<std::string> &paths,
                                                       const StoreOptions &options = {});
  // Writes what the filter accepts to a new file fit to ship, which appears whole or not at all. invalidArgument
  // if there is a file of that name, notFound if no winner and no trial is meant.
  Result<StoreCounts> exportTo(const std::string &path, const RowFilter &filter) const;
  // Makes the file fit to ship: no side files, smallest size, rollback journal.
  Status finalise();

private:
  struct Impl;
  struct Merger;
  struct Verifier;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

// Whether the file of this name, or behind a link of it, is a store, or a log, an index or a journal of one: nothing is
// to take its place. False also where that cannot be told.
bool holdsStore(const std::string &path);

// Fails only if one of the files cannot be read. Lists are in the order of Store::winners and Store::names.
Result<StoreDiff> diffStores(const Store &a, const Store &b);

} // namespace heddle
