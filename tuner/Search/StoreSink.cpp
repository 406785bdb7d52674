#include "tuner/Search/StoreSink.h"

namespace heddle::tuner {

Result<std::vector<PointTrial>> StoreTrialSink::known(const SearchSpace &space) {
  HEDDLE_ASSIGN(std::vector<heddle::Trial> records, store.trials(heddle::Trial::sessionKey(key)));
  std::vector<PointTrial> inSpace;
  for (heddle::Trial &record : records) {
    if (!space.parse(record.config))
      continue;
    HEDDLE_ASSIGN(PointTrial trial, fromRecord(space, record));
    inSpace.push_back(std::move(trial));
  }
  return inSpace;
}

Status StoreTrialSink::record(const SearchSpace &space, const PointTrial &trial) {
  return store.recordTrial(toRecord(space, trial, key));
}

} // namespace heddle::tuner
