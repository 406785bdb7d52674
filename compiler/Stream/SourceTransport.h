// Owns the one end of a group in which rank 0 alone computes: what the plan says that rank 1 sends is read from where the
// rows lie.
#pragma once

#include "compiler/Stream/StreamMachine.h"
#include "runtime/Core/GroupPlan.h"
#include "runtime/Distributed/Transport.h"

namespace heddle {

/// Serves one forward call over `plan`, whose steps come in order.
class SourceTransport final : public Transport {
public:
  SourceTransport(const GroupPlan &plan, int64_t batches, StreamMachine &machine)
      : plan(plan), batches(batches), machine(machine) {}

  int32_t rank() const override { return 0; }
  int32_t ranks() const override { return plan.ranks(); }
  Result<std::vector<std::string>> gather(const std::string &mine) override {
    return std::vector<std::string>(size_t(ranks()), mine);
  }
  Status exchange(const Exchange &step, void *stream) override;
  Status wait(void *) override { return {}; }
  void abort(const std::string &) override {}

private:
  const GroupPlan &plan;
  int64_t batches;
  StreamMachine &machine;
  size_t next = 0; // step
};

} // namespace heddle
