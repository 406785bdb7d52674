//===- StoreLookup.cpp - choosing a winner ----------------------------------===//
#include "runtime/Core/FieldText.h"
#include "runtime/Store/LookupRank.h"
#include "runtime/Store/StoreImpl.h"

#include <algorithm>
#include <cstdlib>

namespace heddle {
namespace {

struct Candidate {
  Winner winner;
  std::string kernelArch;
  int64_t minDriver = 0;
};

int64_t fieldDistance(int64_t wanted, int64_t found) { return wanted < 0 ? 0 : std::llabs(wanted - found); }

// In doublings; the ratio is not logarithmic itself, so it is compared by its bucket.
int64_t bucketDistance(const ProblemBucket &wanted, const ProblemBucket &found) {
  int64_t ratio = wanted.gqaRatio < 0 ? 0 : std::llabs(sizeBucket(wanted.gqaRatio, 1) - sizeBucket(found.gqaRatio, 1));
  return fieldDistance(wanted.workPerSm, found.workPerSm) + fieldDistance(wanted.tilesPerRow, found.tilesPerRow) + ratio;
}

// If it has the code that its architecture lets one expect.
bool mayRun(const LookupQuery &query, const Candidate &candidate) {
  if (query.driverVersion > 0 && candidate.minDriver > query.driverVersion)
    return false;
  return kernelRunsOn(candidate.kernelArch, query.arch) || kernelRunsOn(virtualArch(candidate.kernelArch), query.arch);
}

bool hasCodeFor(const LookupQuery &query, const KernelRecord &record) {
  return (!record.cubin.empty() && kernelRunsOn(record.kernelArch, query.arch)) ||
         (!record.ptx.empty() && kernelRunsOn(virtualArch(record.kernelArch), query.arch));
}

// Without looking at code: where it is long, SQLite reads all of it to know its length.
Result<std::vector<Candidate>> readCandidates(sqlite::Database &database, const LookupQuery &query) {
  HEDDLE_ASSIGN(sqlite::Statement statement,
                database.prepare("SELECT k.kernel_arch, k.min_driver, " + sqlite::columnList<Winner>("w.") +
                                 " FROM winners w JOIN kernels k ON k.content_key = w.content_key"
                                 " WHERE w.pattern = ? AND w.kind = ? AND w.dtype = ? AND w.head_dim = ? AND w.value_dim = ? AND (?6 = '' OR w.generator = ?6)"));
  KernelFamily::fields([&](const char *, auto member) { statement.bind(query.*member); });
  std::vector<Candidate> candidates;
  while (true) {
    HEDDLE_ASSIGN(bool hasRow, statement.step());
    if (!hasRow)
      return candidates;
    Candidate &candidate = candidates.emplace_back();
    HEDDLE_TRY(statement.read(0, candidate.kernelArch));
    HEDDLE_TRY(statement.read(1, candidate.minDriver));
    HEDDLE_TRY(sqlite::readRow(statement, candidate.winner, 2));
  }
}

// Smaller is better; the last field makes the order total.
auto rankOf(const LookupQuery &query, const Winner &winner) {
  return std::make_tuple(lookupRank(query, winner), -winner.createdUnix, winner.contentKey);
}

} // namespace

MatchKind matchOf(const LookupQuery &query, const Winner &winner) {
  if (!winner.isTuned)
    return MatchKind::untunedDefault;
  bool isSameDevice = fieldsEqual(static_cast<const DeviceIdentity &>(query), static_cast<const DeviceIdentity &>(winner));
  bool isSameBucket = fieldsEqual(static_cast<const ProblemBucket &>(query), static_cast<const ProblemBucket &>(winner));
  if (isSameDevice)
    return isSameBucket ? MatchKind::exact : MatchKind::nearestBucket;
  return query.arch == winner.arch ? MatchKind::sameArchitecture : MatchKind::untunedDefault;
}

bool mayName(const Winner &winner, const KernelRecord &kernel) {
  KernelFamily expected = winner;
  expected.pattern = kernel.pattern;
  return fieldsEqual(expected, static_cast<const KernelFamily &>(kernel));
}

LookupRank lookupRank(const LookupQuery &query, const Winner &winner) {
  return {matchOf(query, winner), query.arch != winner.arch, bucketDistance(query, winner), !winner.isTuned};
}

Result<StoreLookup> Store::lookup(const LookupQuery &query) const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction snapshot, impl->beginReading());
  HEDDLE_ASSIGN(std::vector<Candidate> candidates, readCandidates(impl->database, query));
  std::sort(candidates.begin(), candidates.end(),
            [&](const Candidate &a, const Candidate &b) { return rankOf(query, a.winner) < rankOf(query, b.winner); });
  for (const Candidate &candidate : candidates) {
    if (!mayRun(query, candidate))
      continue;
    HEDDLE_ASSIGN(KernelRecord record, impl->readKernel(candidate.winner.contentKey));
    if (!hasCodeFor(query, record))
      continue;
    if (!mayName(candidate.winner, record))
      return Status::corrupt("store '" + impl->path + "': a winner for " + query.kind + " " + dtypeName(query.dtype) + " head_dim=" +
                             std::to_string(query.headDim) + " names kernel " + record.contentKey + ", which computes something else");
    return StoreLookup{matchOf(query, candidate.winner), std::move(record), candidate.winner};
  }
  return StoreLookup();
}

} // namespace heddle
