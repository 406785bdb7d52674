// Keeps the trials of one winner key in a store, so that sessions resume across processes and machines.
#pragma once

#include "runtime/Store/Store.h"
#include "tuner/Space/Trial.h"

namespace heddle::tuner {

// The store must be open for writing and outlive the sink. Failures are those of the store; a stored trial
// of this key that is damaged (unknown outcome, measured without a time) is reported as corrupt.
class StoreTrialSink : public TrialSink {
public:
  StoreTrialSink(Store &store, WinnerKey key) : store(store), key(std::move(key)) {}

  Result<std::vector<PointTrial>> known(const SearchSpace &space) override;
  Status record(const SearchSpace &space, const PointTrial &trial) override;

private:
  Store &store;
  WinnerKey key;
};

} // namespace heddle::tuner
