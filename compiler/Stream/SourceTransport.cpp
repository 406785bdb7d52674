#include "compiler/Stream/SourceTransport.h"

namespace heddle {

/// Messages of a hop come in the order of the fields that travel: keys, then values. Steps of no messages are not asked.
Status SourceTransport::exchange(const Exchange &step, void *) {
  while (plan.forward.steps[next].hops.empty())
    ++next;
  const GroupStep &of = plan.forward.steps[next++];
  auto received = step.receives.begin();
  for (const Hop &hop : of.hops)
    for (Role role : {Role::k, Role::v}) {
      char *to = static_cast<char *>(received++->data);
      for (const HeadRows &part : hop.parts)
        for (const RowRun &run : part.rows) {
          const RowBlock block{role, 0, batches, run, part.firstHead, part.heads};
          HEDDLE_TRY(machine.give(block, to, Queue::link));
          to += machine.source().bytesOf(block);
        }
    }
  return {};
}

} // namespace heddle
