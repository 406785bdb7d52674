#include "runtime/Core/KernelRecord.h"

#include "runtime/Core/FieldText.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace heddle {

int64_t sizeBucket(int64_t numerator, int64_t denominator) {
  unsigned __int128 reached = static_cast<unsigned __int128>(std::max<int64_t>(denominator, 1));
  unsigned __int128 wanted = static_cast<unsigned __int128>(std::max<int64_t>(numerator, 0));
  int64_t bucket = 0;
  for (; reached < wanted; reached *= 2)
    ++bucket;
  return bucket;
}

int64_t ProblemBucket::mostRows(const CallShape &call) { return call.hasValuesToTurn() ? kTurnedRows : kManyRows; }

int64_t ProblemBucket::rowsBucket(int64_t queryRows, const CallShape &call) {
  const int64_t most = mostRows(call);
  return sizeBucket(queryRows < most ? std::min(queryRows, kManyRows) : most, 1);
}

int64_t ProblemBucket::rowsOfDefault(int64_t queries, const CallShape &call) {
  const int64_t most = mostRows(call);
  if (queries <= 0 || queries >= most)
    return most;
  for (int64_t rows : {64, 128, 256})
    if (queries <= rows)
      return rows;
  return kManyRows;
}

bool ProblemBucket::areAsLong(int64_t rows, int64_t others) {
  const int64_t many = sizeBucket(kManyRows, 1);
  return rows < 0 || others < 0 || (rows > many) == (others > many);
}

ProblemBucket ProblemBucket::of(int64_t workItems, int64_t smCount, int64_t visitedTiles, int64_t gqaRatio,
                                int64_t rowsBucket) {
  return {sizeBucket(workItems, smCount), sizeBucket(visitedTiles, workItems), gqaRatio, rowsBucket};
}

std::string ExactProblem::str() const {
  if (batch == 0)
    return "any problem";
  std::string text = std::to_string(batch) + "x" + std::to_string(heads);
  if (kvHeads != heads)
    text += "[" + std::to_string(kvHeads) + "]";
  text += "x" + std::to_string(seqlenQ);
  if (seqlenK != seqlenQ)
    text += "x" + std::to_string(seqlenK);
  return arguments.empty() ? text : text + " (" + arguments + ")";
}

KernelFamily KernelFamily::of(std::string pattern, const CallShape &shape, std::string generator) {
  KernelFamily family;
  family.pattern = std::move(pattern);
  family.kind = KindText::of(shape.kind, shape.elements).str();
  family.dtype = shape.elements.q;
  family.headDim = shape.headDim;
  family.valueDim = shape.valueDim;
  family.generator = std::move(generator);
  return family;
}

Result<CallShape> KernelFamily::shape() const {
  HEDDLE_ASSIGN(const KindText text, KindText::parse(kind));
  return CallShape{text.kind, text.elements(dtype), headDim, valueDim};
}

std::string Trial::sessionKey(const WinnerKey &key) { return fieldDigest(key); }

namespace {

// "sm_90a" is {prefix "sm", version 90, suffix 'a'}; version -1 for any other text.
struct ArchName {
  bool isVirtual = false;
  int version = -1;
  char suffix = 0;
};

ArchName parseArch(std::string_view text) {
  ArchName arch;
  arch.isVirtual = text.substr(0, 8) == "compute_";
  if (!arch.isVirtual && text.substr(0, 3) != "sm_")
    return arch;
  text.remove_prefix(arch.isVirtual ? 8 : 3);
  int version = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  std::string_view rest = text.substr(size_t(end - text.data()));
  bool isKnown = error == std::errc() && version >= 10 && (rest.empty() || rest == "a" || rest == "f");
  arch.version = isKnown ? version : -1;
  arch.suffix = isKnown && !rest.empty() ? rest[0] : 0;
  return arch;
}

} // namespace

bool kernelRunsOn(const std::string &kernelArch, const std::string &deviceArch) {
  ArchName kernel = parseArch(kernelArch), device = parseArch(deviceArch);
  if (kernel.version < 0 || device.version < 0)
    return false;
  if (kernel.suffix == 'a')
    return kernel.version == device.version;
  if (kernel.isVirtual && kernel.suffix == 0)
    return kernel.version <= device.version;
  return kernel.version / 10 == device.version / 10 && kernel.version <= device.version;
}

std::string virtualArch(const std::string &kernelArch) {
  return kernelArch.compare(0, 3, "sm_") == 0 ? "compute_" + kernelArch.substr(3) : kernelArch;
}

const char *matchKindName(MatchKind kind) {
  switch (kind) {
  case MatchKind::exact:
    return "exact";
  case MatchKind::nearestBucket:
    return "nearest bucket";
  case MatchKind::sameArchitecture:
    return "same architecture";
  case MatchKind::untunedDefault:
    return "untuned default";
  case MatchKind::none:
    return "none";
  }
  return "none";
}

} // namespace heddle
