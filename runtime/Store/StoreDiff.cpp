#include "runtime/Store/Store.h"

#include "runtime/Core/FieldText.h"

#include <map>

namespace heddle {
namespace {

template <class T> using Rows = std::map<std::string, const T *>;

std::string keyOf(const Winner &winner) { return fieldDigest(static_cast<const WinnerKey &>(winner)); }
std::string keyOf(const Trial &trial) { return Trial::sessionKey(trial) + trial.configDigest; }
std::string keyOf(const NameRecord &name) { return name.name; }

template <class T> Rows<T> byKey(const std::vector<T> &rows) {
  Rows<T> map;
  for (const T &row : rows)
    map.emplace(keyOf(row), &row);
  return map;
}

bool isSame(const Winner &a, const Winner &b) {
  return a.contentKey == b.contentKey && a.isTuned == b.isTuned && a.medianUs == b.medianUs;
}
bool isSame(const Trial &a, const Trial &b) { return a.outcome == b.outcome && a.medianUs == b.medianUs; }
bool isSame(const NameRecord &a, const NameRecord &b) { return a.pattern == b.pattern && a.parameters == b.parameters; }

// Calls onlyA(a), onlyB(b), both(a, b).
template <class T, class OnlyA, class OnlyB, class Both>
void walk(const std::vector<T> &a, const std::vector<T> &b, OnlyA &&onlyA, OnlyB &&onlyB, Both &&both) {
  Rows<T> inA = byKey(a), inB = byKey(b);
  for (const T &row : a) {
    auto other = inB.find(keyOf(row));
    if (other == inB.end())
      onlyA(row);
    else
      both(row, *other->second);
  }
  for (const T &row : b)
    if (!inA.count(keyOf(row)))
      onlyB(row);
}

std::map<std::string, std::string> configsOf(const std::vector<KernelSummary> &kernels) {
  std::map<std::string, std::string> configs;
  for (const KernelSummary &kernel : kernels)
    configs[kernel.record.contentKey] = kernel.record.config;
  return configs;
}

int64_t countMissing(const std::map<std::string, std::string> &from, const std::map<std::string, std::string> &in) {
  int64_t count = 0;
  for (const auto &entry : from)
    count += !in.count(entry.first);
  return count;
}

} // namespace

bool StoreDiff::isEqual() const {
  return winnersOnlyA.empty() && winnersOnlyB.empty() && winnersDiffer.empty() && namesOnlyA.empty() &&
         namesOnlyB.empty() && namesDiffer.empty() &&
         kernelsOnlyA + kernelsOnlyB + trialsOnlyA + trialsOnlyB + trialsDiffer == 0;
}

Result<StoreDiff> diffStores(const Store &a, const Store &b) {
  HEDDLE_ASSIGN(std::vector<KernelSummary> kernelsA, a.kernels());
  HEDDLE_ASSIGN(std::vector<KernelSummary> kernelsB, b.kernels());
  HEDDLE_ASSIGN(std::vector<Winner> winnersA, a.winners());
  HEDDLE_ASSIGN(std::vector<Winner> winnersB, b.winners());
  HEDDLE_ASSIGN(std::vector<Trial> trialsA, a.allTrials());
  HEDDLE_ASSIGN(std::vector<Trial> trialsB, b.allTrials());
  HEDDLE_ASSIGN(std::vector<NameRecord> namesA, a.names());
  HEDDLE_ASSIGN(std::vector<NameRecord> namesB, b.names());
  std::map<std::string, std::string> configsA = configsOf(kernelsA), configsB = configsOf(kernelsB);
  StoreDiff diff;
  diff.kernelsOnlyA = countMissing(configsA, configsB);
  diff.kernelsOnlyB = countMissing(configsB, configsA);
  walk(
      winnersA, winnersB, [&](const Winner &row) { diff.winnersOnlyA.push_back(row); },
      [&](const Winner &row) { diff.winnersOnlyB.push_back(row); },
      [&](const Winner &left, const Winner &right) {
        if (isSame(left, right))
          ++diff.winnersEqual;
        else
          diff.winnersDiffer.push_back({left, right, configsA[left.contentKey], configsB[right.contentKey]});
      });
  walk(
      trialsA, trialsB, [&](const Trial &) { ++diff.trialsOnlyA; }, [&](const Trial &) { ++diff.trialsOnlyB; },
      [&](const Trial &left, const Trial &right) { diff.trialsDiffer += !isSame(left, right); });
  walk(
      namesA, namesB, [&](const NameRecord &row) { diff.namesOnlyA.push_back(row); },
      [&](const NameRecord &row) { diff.namesOnlyB.push_back(row); },
      [&](const NameRecord &left, const NameRecord &right) {
        if (!isSame(left, right))
          diff.namesDiffer.push_back({left, right});
      });
  return diff;
}

} // namespace heddle
