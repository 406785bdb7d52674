//===- StoreSink.h - trials in the database ---------------------------------===//
// Keeps the trials of one winner key in a store, so that sessions resume across processes and machines.
#ifndef HEDDLE_TUNER_SEARCH_STORESINK_H
#define HEDDLE_TUNER_SEARCH_STORESINK_H

#include "runtime/Store/Store.h"
#include "tuner/Space/Trial.h"

namespace heddle::tuner {

// Where the times of a session come from. What was recorded is kept with its mark (runtime/Core/Recorded.h).
enum class TrialSource { measured, recorded };

// A session that measures knows nothing of recorded trials: it measures those points, and its trials take their place.
// The store must be open for writing and outlive the sink. Failures are those of the store; a stored trial
// of this key that is damaged (unknown outcome, measured without a time) is reported as corrupt.
class StoreTrialSink : public TrialSink {
public:
  StoreTrialSink(Store &store, WinnerKey key, TrialSource source = TrialSource::measured)
      : store(store), key(std::move(key)), source(source) {}

  Result<std::vector<PointTrial>> known(const SearchSpace &space) override;
  Status record(const SearchSpace &space, const PointTrial &trial) override;

private:
  Store &store;
  WinnerKey key;
  TrialSource source;
};

} // namespace heddle::tuner

#endif
