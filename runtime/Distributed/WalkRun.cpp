#include "runtime/Distributed/WalkRun.h"

#include <algorithm>

namespace heddle {
namespace {

uint64_t roundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

Status atStep(size_t step, const Status &status) {
  return status.isOk() ? status : Status(status.code(), "step " + std::to_string(step) + ": " + status.message());
}

} // namespace

WalkRun::WalkRun(std::vector<RowRange> ownRows, const GroupWalk &walk, int32_t rank, int64_t batches, int64_t heads,
                 HeadRange ofWindows, std::vector<WalkField> fieldsOfColumns, std::vector<WalkField> sumsOfColumns)
    : ownRows(std::move(ownRows)), walk(walk), rank(rank), batches(batches), heads(heads), ofWindows(ofWindows),
      fields(std::move(fieldsOfColumns)), sumFields(std::move(sumsOfColumns)) {
  for (const GroupStep &step : walk.steps) {
    uint64_t used = 0, usedByHome = 0;
    layStep(step, memory.emplace_back(), used, usedByHome);
    const size_t slot = (memory.size() - 1) % kSlots;
    slotBytes[slot] = std::max(slotBytes[slot], used);
    homeBytes[slot] = std::max(homeBytes[slot], usedByHome);
  }
}

uint64_t WalkRun::workspaceBytes() const { return slotBytes[0] + slotBytes[1] + homeBytes[0] + homeBytes[1]; }

//===-- memory ----------------------------------------------------------------===//

/// Offsets are within a slot; those of messages home lie behind all slots, as they live longer. Steps take turns, and a
/// slot is as large as its steps: where one of two has no windows, memory is that of the other.
void WalkRun::layStep(const GroupStep &step, StepMemory &memory, uint64_t &used, uint64_t &usedByHome) const {
  for (const RowRange &window : step.ranks[size_t(rank)].windows)
    for (const auto &[of, offsets] : {std::pair(&fields, &memory.windows), std::pair(&sumFields, &memory.sums)}) {
      std::vector<uint64_t> &ofWindow = offsets->emplace_back();
      for (const WalkField &field : *of) {
        ofWindow.push_back(used);
        used += roundUp(uint64_t(batches * window.size() * ofWindows.count * field.own.headBytes), kAlignment);
      }
    }
  for (const Hop &hop : step.hops) {
    const bool isSender = hop.from == rank;
    if (!isSender && hop.to != rank)
      continue;
    (isSender ? memory.sent : memory.received).push_back(layWire(hop, fields, isWhole(hop), used));
    if (!sumFields.empty())
      (isSender ? memory.cameHome : memory.sentHome).push_back(layWire(hop, sumFields, false, usedByHome));
  }
}

WalkRun::Wire WalkRun::layWire(const Hop &hop, const std::vector<WalkField> &of, bool isDirect, uint64_t &used) const {
  Wire wire{&hop, isOneMessage(hop, of), {}};
  const bool isRun = std::all_of(of.begin(), of.end(), [&](const WalkField &field) {
    return hop.to == rank ? !field.isArray : !field.isArray && field.own.isRun(heads);
  });
  if (isDirect && isRun)
    return wire;
  for (const WalkField &field : of) {
    wire.offsets.push_back(used);
    used += wire.isOneMessage ? bytesOf(hop, field) : roundUp(bytesOf(hop, field), kAlignment);
  }
  used = roundUp(used, kAlignment);
  return wire;
}

/// What is no run on either side is packed on both, as every rank sees alike. Few bytes take as long as a message takes.
bool WalkRun::isOneMessage(const Hop &hop, const std::vector<WalkField> &of) const {
  constexpr uint64_t kFewBytes = uint64_t(4) << 20;
  if (batches == 1 && hop.parts.size() == 1 && hop.parts[0].rows.size() == 1 && hop.parts[0].rows[0].rate == 1)
    return false;
  uint64_t bytes = 0;
  for (const WalkField &field : of)
    bytes += bytesOf(hop, field);
  return bytes <= kFewBytes;
}

/// Consecutive rows of all heads that are there: one run of bytes in a tensor without gaps.
bool WalkRun::isWhole(const Hop &hop) const {
  return batches == 1 && hop.parts.size() == 1 && hop.parts[0].heads == (hop.to == rank ? ofWindows.count : heads) &&
         hop.parts[0].rows.size() == 1 && hop.parts[0].rows[0].rate == 1;
}

RowPlace WalkRun::windowOf(const std::vector<WalkField> &of, size_t field, const RowRange &window,
                           char *address) const {
  const int64_t headBytes = of[field].own.headBytes;
  if (of[field].isArray)
    return RowPlace::ofArray(reinterpret_cast<const float *>(address), ofWindows.count, window.size());
  return RowPlace::ofRows(address, window.size(), ofWindows.count, headBytes);
}

RowPlace WalkRun::fieldWindow(size_t step, size_t window, size_t field) const {
  return windowOf(fields, field, own(step).windows[window], slotOf(step) + memory[step].windows[window][field]);
}

RowPlace WalkRun::sumWindow(size_t step, size_t window, size_t field) const {
  return windowOf(sumFields, field, own(step).windows[window], slotOf(step) + memory[step].sums[window][field]);
}

RowPlace WalkRun::ownFrom(const WalkField &field, int64_t row) const {
  return field.own.at(placeOfRow(ownRows, row), 0);
}

RowPlace WalkRun::columns(size_t step, const ShardLaunch &launch, size_t field) const {
  if (launch.window < 0)
    return ownFrom(fields[field], launch.columns.begin);
  const size_t window = size_t(launch.window);
  return fieldWindow(step, window, field).at(launch.columns.begin - own(step).windows[window].begin, 0);
}

RowPlace WalkRun::sums(size_t step, const ShardLaunch &launch, size_t field) const {
  if (launch.window < 0)
    return ownFrom(sumFields[field], launch.columns.begin);
  const size_t window = size_t(launch.window);
  return sumWindow(step, window, field).at(launch.columns.begin - own(step).windows[window].begin, 0);
}

size_t WalkRun::windowWith(size_t step, const RowRun &run) const {
  const std::vector<RowRange> &windows = own(step).windows;
  size_t window = 0;
  while (run.first < windows[window].begin || run.last() >= windows[window].end)
    ++window;
  return window;
}

//===-- messages --------------------------------------------------------------===//

void WalkRun::addRuns(const Hop &hop, const WalkField &of, char *message, const PlaceOfRun &here, Way way,
                      std::vector<RowCopy> &copies) const {
  const int64_t headBytes = of.own.headBytes;
  for (const HeadRows &part : hop.parts)
    for (const RowRun &run : part.rows) {
      const RowPlace packed = of.isArray ? RowPlace::ofArray(reinterpret_cast<float *>(message), part.heads, run.count)
                                         : RowPlace::ofRows(message, run.count, part.heads, headBytes);
      const RowPlace rows = here(run).at(0, part.firstHead).withRowStep(run.rate);
      const bool isPacked = way == Way::intoMessage;
      copies.push_back({isPacked ? packed : rows, isPacked ? rows : packed, batches, run.count, part.heads});
      message += batches * run.count * part.heads * headBytes;
    }
}

template <class Message>
void WalkRun::addMessages(const Wire &wire, int32_t peer, const std::vector<WalkField> &of, const PlaceOfField &place,
                          std::vector<Message> &messages) const {
  for (size_t field = 0; field < of.size(); ++field)
    if (field > 0 && wire.isOneMessage)
      messages.back().bytes += bytesOf(*wire.hop, of[field]);
    else
      messages.push_back({peer, place(field), bytesOf(*wire.hop, of[field])});
}

char *WalkRun::fetchedAt(size_t step, const Wire &wire, size_t field) const {
  return slotOf(step) + wire.offsets[field];
}

char *WalkRun::homewardAt(size_t step, const Wire &wire, size_t field) const {
  return base + slotBytes[0] + slotBytes[1] + (step % kSlots ? homeBytes[0] : 0) + wire.offsets[field];
}

uint64_t WalkRun::bytesOf(const Hop &hop, const WalkField &field) const {
  return uint64_t(batches * hop.headRows() * field.own.headBytes);
}

RowPlace WalkRun::inWindow(size_t step, const RowRun &run, const std::vector<WalkField> &of, size_t field) const {
  const size_t window = windowWith(step, run);
  const RowPlace place = &of == &fields ? fieldWindow(step, window, field) : sumWindow(step, window, field);
  return place.at(run.first - own(step).windows[window].begin, -ofWindows.first);
}

/// Nothing is enqueued for the step on the queue of links.
bool WalkRun::isQuiet(size_t step, const Besides &besides) const {
  return memory[step].sent.empty() && memory[step].received.empty() && own(step).blanks.empty() && !besides.addMessages;
}

Status WalkRun::fetch(size_t step, const RankView &ranks, ShardDevice &device, const Besides &besides) const {
  if (isQuiet(step, besides))
    return {};
  HEDDLE_TRY(device.follow(Queue::link, Queue::compute));
  if (!isClearedBeside(step))
    HEDDLE_TRY(clearBlanks(step, device, Queue::link));
  Exchange exchange;
  std::vector<RowCopy> copies;
  for (const Wire &wire : memory[step].sent) {
    auto message = [&](size_t field) {
      return wire.isDirect() ? ownFrom(fields[field], wire.hop->parts[0].rows[0].first).base
                             : fetchedAt(step, wire, field);
    };
    for (size_t field = 0; field < fields.size() && !wire.isDirect(); ++field)
      addRuns(
          *wire.hop, fields[field], message(field),
          [&](const RowRun &run) { return ownFrom(fields[field], run.first); }, Way::intoMessage, copies);
    addMessages(wire, wire.hop->to, fields, message, exchange.sends);
  }
  HEDDLE_TRY(device.copyAll(copies, Queue::link));
  auto placeOf = [&](const Wire &wire, size_t field) {
    return wire.isDirect()
               ? inWindow(step, wire.hop->parts[0].rows[0], fields, field).at(0, wire.hop->parts[0].firstHead).base
               : fetchedAt(step, wire, field);
  };
  for (const Wire &wire : memory[step].received)
    addMessages(wire, wire.hop->from, fields, [&](size_t field) { return placeOf(wire, field); }, exchange.receives);
  if (besides.addMessages)
    HEDDLE_TRY(besides.addMessages(step, exchange));
  HEDDLE_TRY(travel(exchange, ranks, device));
  if (!exchange.sends.empty() || !exchange.receives.empty())
    HEDDLE_TRY(device.letBegin(Queue::link));
  std::vector<RowCopy> arrived;
  for (const Wire &wire : memory[step].received)
    for (size_t field = 0; field < fields.size() && !wire.isDirect(); ++field)
      addRuns(
          *wire.hop, fields[field], placeOf(wire, field),
          [&](const RowRun &run) { return inWindow(step, run, fields, field); }, Way::outOfMessage, arrived);
  return device.copyAll(arrived, Queue::link);
}

Status WalkRun::meetOwnRows(size_t step, size_t window,
                            const std::function<Status(const RowRange &common)> &meet) const {
  const RowRange &of = own(step).windows[window];
  for (const RowRange &range : ownRows)
    if (const RowRange common{std::max(of.begin, range.begin), std::min(of.end, range.end)}; common.begin < common.end)
      HEDDLE_TRY(meet(common));
  return {};
}

bool WalkRun::isClearedBeside(size_t step) const {
  if (step != 1 || !own(0).launches.empty())
    return false;
  auto isBlank = [&](const RowRun &run) {
    return std::any_of(own(step).blanks.begin(), own(step).blanks.end(),
                       [&](const RowRange &blank) { return run.first < blank.end && blank.begin <= run.last(); });
  };
  return std::none_of(memory[step].received.begin(), memory[step].received.end(), [&](const Wire &wire) {
    return std::any_of(wire.hop->parts.begin(), wire.hop->parts.end(),
                       [&](const HeadRows &part) { return std::any_of(part.rows.begin(), part.rows.end(), isBlank); });
  });
}

/// Kernels may look at them, and keep none.
Status WalkRun::clearBlanks(size_t step, ShardDevice &device, Queue queue) const {
  for (const RowRange &blank : own(step).blanks)
    for (size_t field = 0; field < fields.size(); ++field) {
      const RowPlace place = inWindow(step, {blank.begin, 1, blank.size()}, fields, field);
      const int64_t parts = place.isRun(heads) ? 1 : heads; // windows with blanks have all heads
      for (int64_t part = 0; part < batches * parts; ++part)
        HEDDLE_TRY(device.clear(place.at(0, part % parts).base + part / parts * place.batchStride,
                                uint64_t(blank.size() * place.rowStride), queue));
    }
  return {};
}

/// The rank's own rows of the windows. Not while launches of the step before compute: copies wait for their processors. So
/// those of the second step are copied in front of the first launches.
Status WalkRun::copyOwnRows(size_t step, ShardDevice &device) const {
  std::vector<RowCopy> copies;
  for (size_t window = 0; window < own(step).windows.size(); ++window)
    for (size_t field = 0; field < fields.size(); ++field)
      HEDDLE_TRY(meetOwnRows(step, window, [&](const RowRange &common) {
        const RowPlace to = fieldWindow(step, window, field).at(common.begin - own(step).windows[window].begin, 0);
        const RowPlace from = ownFrom(fields[field], common.begin).at(0, ofWindows.first);
        copies.push_back({to, from, batches, common.size(), ofWindows.count});
        return Status();
      }));
  return device.copyAll(copies, Queue::compute);
}

/// Kernels that fill the GPU keep a message from beginning, so those that are enqueued behind it let it begin before them.
Status WalkRun::travel(const Exchange &exchange, const RankView &ranks, ShardDevice &device) {
  if (exchange.sends.empty() && exchange.receives.empty())
    return {};
  HEDDLE_TRY(device.follow(Queue::compute, Queue::link));
  return ranks.exchange(exchange, device.stream(Queue::link));
}

//===-- sums that go home -----------------------------------------------------===//

Status WalkRun::addOwnSums(size_t step, ShardDevice &device) const {
  for (size_t window = 0; window < own(step).windows.size(); ++window)
    for (size_t field = 0; field < sumFields.size(); ++field)
      HEDDLE_TRY(meetOwnRows(step, window, [&](const RowRange &common) {
        const RowPlace from = sumWindow(step, window, field).at(common.begin - own(step).windows[window].begin, 0);
        const RowPlace to = ownFrom(sumFields[field], common.begin).at(0, ofWindows.first);
        return bring(sumFields[field], {to, from, batches, common.size(), ofWindows.count}, device);
      }));
  return {};
}

Status WalkRun::sendHome(size_t step, const RankView &ranks, ShardDevice &device) const {
  HEDDLE_TRY(addOwnSums(step, device));
  if (isQuietHome(step))
    return {};
  HEDDLE_TRY(device.follow(Queue::link, Queue::compute));
  Exchange exchange;
  std::vector<RowCopy> copies;
  auto message = [&](const Wire &wire) {
    return [this, step, &wire](size_t field) { return homewardAt(step, wire, field); };
  };
  for (const Wire &wire : memory[step].sentHome) {
    for (size_t field = 0; field < sumFields.size(); ++field)
      addRuns(
          *wire.hop, sumFields[field], homewardAt(step, wire, field),
          [&](const RowRun &run) { return inWindow(step, run, sumFields, field); }, Way::intoMessage, copies);
    addMessages(wire, wire.hop->from, sumFields, message(wire), exchange.sends);
  }
  HEDDLE_TRY(device.copyAll(copies, Queue::link));
  for (const Wire &wire : memory[step].cameHome)
    addMessages(wire, wire.hop->to, sumFields, message(wire), exchange.receives);
  return travel(exchange, ranks, device);
}

/// What came home of a step is added, in the order of the plan.
Status WalkRun::settle(size_t step, ShardDevice &device) const {
  if (isQuietHome(step))
    return {};
  HEDDLE_TRY(device.follow(Queue::compute, Queue::link));
  for (const Wire &wire : memory[step].cameHome)
    for (size_t field = 0; field < sumFields.size(); ++field) {
      std::vector<RowCopy> came;
      addRuns(
          *wire.hop, sumFields[field], homewardAt(step, wire, field),
          [&](const RowRun &run) { return ownFrom(sumFields[field], run.first); }, Way::outOfMessage, came);
      for (const RowCopy &rows : came)
        HEDDLE_TRY(bring(sumFields[field], rows, device));
    }
  return {};
}

Status WalkRun::clearSums(size_t step, ShardDevice &device) const {
  for (size_t window = 0; window < own(step).windows.size(); ++window)
    for (size_t field = 0; field < sumFields.size(); ++field) {
      const int64_t rows = own(step).windows[window].size() * ofWindows.count;
      if (!sumFields[field].isWritten)
        HEDDLE_TRY(device.clear(sumWindow(step, window, field).base,
                                uint64_t(batches * rows * sumFields[field].own.headBytes), Queue::compute));
    }
  return {};
}

//===-- the walk --------------------------------------------------------------===//

Status WalkRun::arrive(const RankView &ranks, ShardDevice &device) const {
  return atStep(0, fetch(0, ranks, device, {}));
}

Status WalkRun::place(ShardDevice &device) const {
  HEDDLE_TRY(copyOwnRows(0, device));
  return clearSums(0, device);
}

Status WalkRun::leave(const RankView &ranks, ShardDevice &device) const {
  return atStep(0, sendHome(0, ranks, device));
}

Status WalkRun::run(const RankView &ranks, ShardDevice &device, const Compute &compute, const Besides &besides) const {
  const size_t count = walk.steps.size();
  for (size_t step = 0; step < count; ++step) {
    if (step == 0)
      HEDDLE_TRY(atStep(0, fetch(0, ranks, device, besides)));
    const bool isIdle = step == 0 || own(step - 1).launches.empty();
    if (isIdle && step != 1)
      HEDDLE_TRY(copyOwnRows(step, device));
    if (!isQuiet(step, besides) && !(besides.isHere && besides.isHere(step)))
      HEDDLE_TRY(device.follow(Queue::compute, Queue::link));
    if (besides.begin)
      HEDDLE_TRY(atStep(step, besides.begin(step)));
    if (step + 1 < count)
      HEDDLE_TRY(atStep(step + 1, fetch(step + 1, ranks, device, besides)));
    if (!isIdle && step > 1)
      HEDDLE_TRY(copyOwnRows(step, device));
    if (step == 0 && count > 1) {
      HEDDLE_TRY(copyOwnRows(1, device));
      if (isClearedBeside(1))
        HEDDLE_TRY(clearBlanks(1, device, Queue::compute));
    }
    if (step == 0 && besides.copied)
      HEDDLE_TRY(besides.copied());
    HEDDLE_TRY(clearSums(step, device));
    for (const ShardLaunch &launch : own(step).launches)
      HEDDLE_TRY(atStep(step, compute(step, launch)));
    if (sumFields.empty())
      continue;
    if (step > 0)
      HEDDLE_TRY(settle(step - 1, device));
    HEDDLE_TRY(atStep(step, sendHome(step, ranks, device)));
  }
  if (!sumFields.empty() && count > 0)
    HEDDLE_TRY(settle(count - 1, device));
  return device.follow(Queue::compute, Queue::link); // what is sent from a caller's memory has left it then
}

} // namespace heddle
