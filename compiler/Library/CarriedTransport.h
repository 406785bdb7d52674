// Ranks whose messages a caller carries.
#pragma once

#include "compiler/Library/heddle_compiler.h"
#include "runtime/Distributed/Transport.h"

#include <mutex>

namespace heddle {

/// A rank of processes on processors: what the caller's function moves has happened on return. What of a rank that leaves
/// the others see is the function's: they wait for as long as it does.
class CarriedTransport : public Transport {
public:
  struct Carrier {
    heddle_exchange exchange;
    void *context;
  };
  CarriedTransport(Carrier carrier, int32_t rank, int32_t ranks) : carrier(carrier), own(rank), all(ranks) {}

  int32_t rank() const override { return own; }
  int32_t ranks() const override { return all; }
  /// Lengths, then texts, between all pairs.
  Result<std::vector<std::string>> gather(const std::string &mine) override;
  Status exchange(const Exchange &step, void *stream) override;
  Status wait(void *) override { return {}; }
  void abort(const std::string &why) override;

private:
  Status checkWhole();

  const Carrier carrier;
  const int32_t own, all;
  std::mutex mutex;
  std::string left; ///< why the group is over
};

} // namespace heddle
