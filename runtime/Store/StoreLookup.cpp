#include "runtime/Core/FieldText.h"
#include "runtime/Store/StoreImpl.h"

#include <algorithm>
#include <cmath>

namespace heddle {
namespace {

struct Candidate {
  Winner winner;
  sqlite::KernelNeeds kernel;
  LookupOrder order;

  const LookupRank &rank() const { return std::get<LookupRank>(order); }
  // The last field makes the order total.
  bool operator<(const Candidate &other) const {
    return std::tie(order, other.winner.createdUnix, winner.contentKey) <
           std::tie(other.order, winner.createdUnix, other.winner.contentKey);
  }
};

int64_t fieldDistance(int64_t wanted, int64_t found) { return wanted < 0 ? 0 : std::llabs(wanted - found); }

// In doublings; the ratio is not logarithmic itself, so it is compared by its bucket.
int64_t bucketDistance(const ProblemBucket &wanted, const ProblemBucket &found) {
  int64_t ratio = wanted.gqaRatio < 0 ? 0 : std::llabs(sizeBucket(wanted.gqaRatio, 1) - sizeBucket(found.gqaRatio, 1));
  return fieldDistance(wanted.workPerSm, found.workPerSm) + fieldDistance(wanted.tilesPerRow, found.tilesPerRow) +
         fieldDistance(wanted.queryRows, found.queryRows) + ratio;
}

double sizesDistance(const ExactProblem &wanted, const ExactProblem &found) {
  double doublings = 0;
  for (auto size : {&ExactProblem::batch, &ExactProblem::heads, &ExactProblem::kvHeads, &ExactProblem::seqlenQ,
                    &ExactProblem::seqlenK})
    if (wanted.*size > 0 && found.*size > 0)
      doublings += std::fabs(std::log2(double(wanted.*size) / double(found.*size)));
  return doublings;
}

auto beyondSizes(const ExactProblem &problem) { return std::tie(problem.qOrigin, problem.kOrigin, problem.arguments); }

// If it has the code that its architecture lets one expect.
bool mayRun(const LookupQuery &query, const Candidate &candidate) {
  const sqlite::KernelNeeds &kernel = candidate.kernel;
  if (query.driverVersion > 0 && kernel.minDriver > query.driverVersion)
    return false;
  return kernelRunsOn(kernel.kernelArch, query.arch) || kernelRunsOn(virtualArch(kernel.kernelArch), query.arch);
}

bool hasCodeFor(const LookupQuery &query, const KernelRecord &record) {
  return (!record.cubin.empty() && kernelRunsOn(record.kernelArch, query.arch)) ||
         (!record.ptx.empty() && kernelRunsOn(virtualArch(record.kernelArch), query.arch));
}

// Of the row that the statement stands at. What decides whether a winner is passed by is held against checksums like
// the winner.
Status readCandidate(sqlite::Statement &statement, const std::string &path, Candidate &candidate) {
  std::string needsChecksum;
  int64_t hasKernel = 0;
  HEDDLE_TRY(statement.read(0, hasKernel));
  constexpr int kFirstOfWinner = 5;
  HEDDLE_TRY(sqlite::readCheckedRow(statement, candidate.winner, path, kFirstOfWinner));
  if (!hasKernel)
    return Status::corrupt("store '" + path + "': a winner names kernel " + candidate.winner.contentKey +
                           ", which is not there");
  HEDDLE_TRY(statement.read(1, needsChecksum));
  HEDDLE_TRY(sqlite::readRow(statement, candidate.kernel, 2));
  if (needsChecksum == fieldDigest(candidate.kernel) && candidate.kernel.contentKey == candidate.winner.contentKey)
    return {};
  return Status::corrupt("store '" + path + "': kernel " + candidate.winner.contentKey +
                         " does not match its checksum");
}

bool isForAnyGenerator(const KernelFamily &wanted, KernelFamily found) {
  found.generator = wanted.generator;
  return fieldsEqual(wanted, found);
}

// Without looking at code: where it is long, SQLite reads all of it to know its length. Rows of other generators are
// read too: until its checksum is compared, a row may only seem to be one.
Result<std::vector<Candidate>> readCandidates(sqlite::Database &database, const std::string &path,
                                              const LookupQuery &query) {
  HEDDLE_ASSIGN(
      sqlite::Statement statement,
      database.prepare("SELECT k.content_key IS NOT NULL, k.needs_checksum, " +
                       sqlite::columnList<sqlite::KernelNeeds>("k.") + ", w.rowid, w.checksum, " +
                       sqlite::columnList<Winner>("w.") +
                       " FROM winners w LEFT JOIN kernels k ON k.content_key = w.content_key"
                       " WHERE w.pattern = ? AND w.kind = ? AND w.dtype = ? AND w.head_dim = ? AND w.value_dim = ?"));
  statement.bind(query.pattern).bind(query.kind).bind(query.dtype).bind(query.headDim).bind(query.valueDim);
  std::vector<Candidate> candidates;
  while (true) {
    HEDDLE_ASSIGN(bool hasRow, statement.step());
    if (!hasRow)
      return candidates;
    Candidate candidate;
    HEDDLE_TRY(readCandidate(statement, path, candidate));
    if (!isForAnyGenerator(query, candidate.winner))
      return Status::corrupt("store '" + path + "': its index of winners leads to the winner of another pattern");
    candidate.order = lookupOrder(query, candidate.winner);
    if (query.generator.empty() || candidate.winner.generator == query.generator)
      candidates.push_back(std::move(candidate));
  }
}

// How the winner, if its kernel runs at all, answers the query.
MatchKind matchOf(const LookupQuery &query, const Winner &winner) {
  if (!winner.isTuned || !ProblemBucket::areAsLong(query.queryRows, winner.queryRows))
    return MatchKind::untunedDefault;
  bool isSameDevice =
      fieldsEqual(static_cast<const DeviceIdentity &>(query), static_cast<const DeviceIdentity &>(winner));
  bool isSameBucket =
      fieldsEqual(static_cast<const ProblemBucket &>(query), static_cast<const ProblemBucket &>(winner));
  if (isSameDevice)
    return isSameBucket ? MatchKind::exact : MatchKind::nearestBucket;
  return query.arch == winner.arch ? MatchKind::sameArchitecture : MatchKind::untunedDefault;
}

} // namespace

bool mayName(const Winner &winner, const KernelRecord &kernel) {
  KernelFamily expected = winner;
  expected.pattern = kernel.pattern;
  return fieldsEqual(expected, static_cast<const KernelFamily &>(kernel));
}

LookupRank lookupRank(const LookupQuery &query, const Winner &winner) {
  const bool isAsLong = ProblemBucket::areAsLong(query.queryRows, winner.queryRows);
  const int standing = isAsLong ? 0 : winner.isTuned ? 1 : 2;
  return {matchOf(query, winner), query.arch != winner.arch, standing, bucketDistance(query, winner), !winner.isTuned};
}

LookupOrder lookupOrder(const LookupQuery &query, const Winner &winner) {
  return {lookupRank(query, winner), sizesDistance(query, winner), beyondSizes(query) != beyondSizes(winner)};
}

Result<StoreLookup> Store::lookup(const LookupQuery &query) const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  HEDDLE_ASSIGN(sqlite::Transaction snapshot, impl->beginReading());
  HEDDLE_ASSIGN(std::vector<Candidate> candidates, readCandidates(impl->database, impl->path, query));
  std::sort(candidates.begin(), candidates.end());
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate &candidate = candidates[i];
    if (!mayRun(query, candidate))
      continue;
    HEDDLE_ASSIGN(KernelRecord record, impl->readKernel(candidate.winner.contentKey));
    if (!hasCodeFor(query, record))
      continue;
    if (!mayName(candidate.winner, record))
      return Status::corrupt("store '" + impl->path + "': a winner for " + query.kind + " " + dtypeName(query.dtype) +
                             " head_dim=" + std::to_string(query.headDim) + " names kernel " + record.contentKey +
                             ", which computes something else");
    const bool isAlone = i + 1 == candidates.size() || candidates[i + 1].rank() != candidate.rank();
    return StoreLookup{std::get<MatchKind>(candidate.rank()), std::move(record), candidate.winner, isAlone};
  }
  return StoreLookup();
}

} // namespace heddle
