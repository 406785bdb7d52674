#include "compiler/Stream/SourceTransport.h"

namespace heddle {

/// Messages of a hop have what travels in the order of its fields: keys, then values, in one message or in two. Steps of no
/// messages are not asked.
Status SourceTransport::exchange(const Exchange &step, void *) {
  while (plan.forward.steps[next].hops.empty())
    ++next;
  const GroupStep &of = plan.forward.steps[next++];
  auto received = step.receives.begin();
  uint64_t given = 0; // of a message
  for (const Hop &hop : of.hops)
    for (Role role : {Role::k, Role::v})
      for (const HeadRows &part : hop.parts)
        for (const RowRun &run : part.rows) {
          const RowBlock block{role, 0, batches, run, part.firstHead, part.heads};
          if (given == received->bytes)
            ++received, given = 0;
          HEDDLE_TRY(machine.give(block, static_cast<char *>(received->data) + given, Queue::link));
          given += uint64_t(machine.source().bytesOf(block));
        }
  return {};
}

} // namespace heddle
