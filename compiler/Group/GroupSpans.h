// Owns what a rank does at which time of a call over ranks, for who draws or prints it.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle {

enum class SpanQueue : uint8_t {
  Kernels,
  Aside, ///< launches beside those of the first queue, on which they have their share of the processors as well
  Links
};
inline constexpr const char *kSpanQueues[] = {"kernels", "aside", "links"};

enum class SpanKind : uint8_t {
  Launch,  ///< what is computed
  Further, ///< the fixed time of a launch behind the first one
  Beside,  ///< by which launches end later because of the message beside them
  Memory,  ///< carries, copies, what is packed and unpacked
  Message
};
inline constexpr const char *kSpanKinds[] = {"launch", "further", "beside", "memory", "message"};

/// In ms since the call began.
struct GroupSpan {
  SpanQueue queue;
  SpanKind kind;
  double begin, end;
};

/// Those of a queue are in order and do not overlap; where it has none it waits.
using GroupSpans = std::vector<GroupSpan>;

enum class Spans : bool { left, kept };

/// Nothing that takes no time.
inline void addSpan(GroupSpans &spans, GroupSpan span) {
  if (span.end > span.begin)
    spans.push_back(span);
}

} // namespace heddle
