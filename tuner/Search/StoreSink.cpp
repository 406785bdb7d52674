//===- StoreSink.cpp --------------------------------------------------------===//
#include "tuner/Search/StoreSink.h"
#include "runtime/Core/Recorded.h"

namespace heddle::tuner {

Result<std::vector<PointTrial>> StoreTrialSink::known(const SearchSpace &space) {
  HEDDLE_ASSIGN(std::vector<heddle::Trial> records, store.trials(heddle::Trial::sessionKey(key)));
  std::vector<PointTrial> inSpace;
  for (heddle::Trial &record : records) {
    if (!space.parse(record.config) || (source == TrialSource::measured && isRecorded(record)))
      continue;
    record.message = messageOf(record);
    HEDDLE_ASSIGN(PointTrial trial, fromRecord(space, record));
    inSpace.push_back(std::move(trial));
  }
  return inSpace;
}

Status StoreTrialSink::record(const SearchSpace &space, const PointTrial &trial) {
  heddle::Trial record = toRecord(space, trial, key);
  if (source == TrialSource::recorded)
    record.message = recordedMessage(record.message);
  return store.recordTrial(record);
}

} // namespace heddle::tuner
