// The whole contents of a store as sorted lines, so that two files are compared by what they hold, and random
// stores whose keys and values collide often.
#ifndef HEDDLE_TESTS_UNIT_STORE_CONTENTS_H
#define HEDDLE_TESTS_UNIT_STORE_CONTENTS_H

#include "runtime/Core/FieldText.h"
#include "store_fixture.h"

#include <algorithm>
#include <random>

namespace heddle::test {

inline void require(const Status &status) { REQUIRE_MESSAGE(status.isOk(), status.str()); }

template <class T> T require(Result<T> result) {
  REQUIRE_MESSAGE(result.isOk(), result.status().str());
  return result.take();
}

template <class T> std::vector<std::string> linesOf(const char *table, const std::vector<T> &rows) {
  std::vector<std::string> lines;
  for (const T &row : rows) {
    std::string text = fieldText(row);
    std::replace(text.begin(), text.end(), '\n', ' ');
    lines.push_back(table + (": " + text));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

inline std::string contentsOf(const Store &store, bool withUnreferencedKernels = true) {
  std::vector<KernelRecord> kernels;
  for (const KernelSummary &kernel : require(store.kernels()))
    if (withUnreferencedKernels || kernel.winnerCount)
      kernels.push_back(require(store.kernel(kernel.record.contentKey)));
  std::string text;
  for (const auto &lines : {linesOf("kernel", kernels), linesOf("winner", require(store.winners())),
                            linesOf("trial", require(store.allTrials())), linesOf("device", require(store.devices())),
                            linesOf("links", require(store.links())), linesOf("name", require(store.names()))})
    for (const std::string &line : lines)
      text += line + "\n";
  return text;
}

inline std::string contentsOf(const std::string &path) { return contentsOf(openStore(path, {})); }

class RandomRows {
public:
  explicit RandomRows(uint32_t seed) : engine(seed) {}
  int64_t below(int64_t limit) { return int64_t(engine() % uint32_t(limit)); }

  KernelRecord kernel() {
    std::string pattern = "pattern-" + std::to_string(below(2));
    KernelRecord record = someKernel("k" + std::to_string(below(4)) + pattern.back(), pattern, 50);
    if (below(4) == 0)
      record.ptx.clear();
    else if (below(4) == 0)
      record.cubin.clear();
    record.note = below(2) ? "a note" : "";
    return record;
  }
  DeviceIdentity device() { return {below(4) ? "Some GPU" : "Other GPU", "sm_90", 132, 140}; }
  Winner winner(const KernelRecord &record) {
    Winner winner = someWinner(record, {below(2), 0, 1}, device());
    winner.isTuned = below(3) > 0;
    winner.seqlenQ = 1024 * below(2);
    winner.medianUs = winner.isTuned ? double(below(4)) : 0;
    winner.driverVersion = 13000 + below(2);
    winner.createdUnix = 100 + below(3);
    return winner;
  }
  Trial trial() {
    Trial trial = someTrial("block_m=" + std::to_string(64 * below(4)), double(1 + below(3)));
    trial.workPerSm = below(2);
    trial.seqlenQ = 1024 * below(2);
    trial.outcome = below(3) ? "measured" : "wrong";
    if (below(5) == 0 && trial.outcome == "wrong")
      trial.maxError = std::nan("");
    trial.message = below(2) ? "several\nlines" : "";
    trial.createdUnix = 100 + below(3);
    return trial;
  }
  DeviceRecord deviceRecord() {
    DeviceRecord record;
    static_cast<DeviceIdentity &>(record) = device();
    record.driverVersion = 13000 + below(2);
    record.l2Bytes = below(2) << 20;
    record.createdUnix = 100 + below(2);
    return record;
  }
  LinkRecord links() {
    LinkRecord record;
    record.deviceName = device().deviceName;
    record.ranks = 2 + below(2), record.hosts = 1 + below(2);
    record.gbps = double(100 + below(3)), record.latencyUs = double(below(20));
    record.messages = "1048576:10.0", record.nccl = "2.28.9";
    record.createdUnix = 100 + below(2);
    return record;
  }
  NameRecord name() {
    return {below(2) ? "causal" : "window", "pattern-" + std::to_string(below(2)), below(2) ? "left" : "",
            100 + below(2)};
  }

private:
  std::minstd_rand engine;
};

// A finalised store of up to a dozen rows of each kind; some are empty.
inline void makeRandomStore(const std::string &path, uint32_t seed) {
  RandomRows rows(seed);
  Store store = openStore(path, writing());
  for (int64_t i = rows.below(12); i > 0; --i) {
    KernelRecord record = rows.kernel();
    require(store.publish(record, rows.winner(record)));
  }
  for (int64_t i = rows.below(12); i > 0; --i)
    require(store.recordTrial(rows.trial()));
  for (int64_t i = rows.below(3); i > 0; --i)
    require(store.recordDevice(rows.deviceRecord()));
  for (int64_t i = rows.below(3); i > 0; --i)
    require(store.recordLinks(rows.links()));
  for (int64_t i = rows.below(3); i > 0; --i)
    require(store.setName(rows.name()));
  require(store.finalise());
}

} // namespace heddle::test

#endif
