#include "runtime/Distributed/RowEntries.h"

#include <algorithm>

namespace heddle {
namespace {

/// Those of them in a range.
RowRun clipped(const RowRun &run, const RowRange &range) {
  auto stepsTo = [&](int64_t row) { return row <= run.first ? 0 : (row - run.first + run.rate - 1) / run.rate; };
  const int64_t first = stepsTo(range.begin), end = std::min(run.count, stepsTo(range.end));
  return {run.first + first * run.rate, run.rate, std::max<int64_t>(0, end - first)};
}

RowRange common(const RowRange &a, const RowRange &b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

/// Rows that some head keeps, once.
HeadRows ofAllHeads(const std::vector<HeadRows> &parts) {
  std::vector<int64_t> rows;
  for (const HeadRows &part : parts)
    for (const RowRun &run : part.rows)
      for (int64_t number = 0; number < run.count; ++number)
        rows.push_back(run.first + run.rate * number);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  HeadRows all{0, 1, {}};
  for (int64_t row : rows)
    if (!all.rows.empty() && all.rows.back().last() + 1 == row)
      ++all.rows.back().count;
    else
      all.rows.push_back({row, 1, 1});
  return all;
}

} // namespace

RowEntries::RowEntries(const GroupPlan &plan, const RowTensor &tensor, int32_t rank, const std::vector<RowRange> &rows,
                       int64_t batches, const void *entries, Memory &memory)
    : plan(plan), tensor(tensor), rank(rank), rows(rows), batches(tensor.isOfBatches ? batches : 1),
      entries(static_cast<const char *>(entries)) {
  for (size_t step = 0; step < plan.transposed.steps.size(); ++step) {
    StepEntries &of = steps.emplace_back();
    for (const ShardLaunch &launch : stepOf(step, rank).launches) {
      const int64_t bytes = this->batches * heads() * launch.columns.size() * widthOf(rank, launch);
      of.windows.push_back(launch.window < 0 ? nullptr : memory.take(bytes));
    }
    for (const Hop &hop : plan.transposed.steps[step].hops)
      if (hop.from == rank || hop.to == rank)
        (hop.from == rank ? of.sent : of.received).push_back(letterOf(step, hop, memory));
  }
}

//===-- where entries lie -----------------------------------------------------===//

RowRange RowEntries::keysOf(int32_t of, const ShardLaunch &launch) const {
  return tensor.isOfKeys ? plan.keysMetBy(of, launch.rows) : RowRange{0, 1};
}

int64_t RowEntries::widthOf(int32_t of, const ShardLaunch &launch) const {
  return keysOf(of, launch).size() * entryBytes();
}

/// Columns of some keys, of so many bytes in all.
RowPlace RowEntries::ownRows(const RowRange &keys, int64_t width) const {
  const int64_t head = rowCount(rows) * tensor.rowBytes;
  char *const first = const_cast<char *>(entries) + keys.begin * entryBytes();
  return {first, heads() * head, tensor.rowBytes, head, width};
}

RowPlace RowEntries::windowOf(size_t step, size_t launch) const {
  const ShardLaunch &of = stepOf(step, rank).launches[launch];
  const int64_t width = widthOf(rank, of), head = of.columns.size() * width;
  return {steps[step].windows[launch], heads() * head, width, head, width};
}

RowEntries::View RowEntries::of(size_t step, const ShardLaunch &launch) const {
  const std::vector<ShardLaunch> &launches = stepOf(step, rank).launches;
  if (launch.window < 0)
    return {entries + placeOfRow(rows, launch.columns.begin) * tensor.rowBytes, rowCount(rows), plan.rows};
  const RowRange keys = keysOf(rank, launch);
  const char *const window = steps[step].windows[size_t(&launch - launches.data())];
  return {window - keys.begin * entryBytes(), launch.columns.size(), keys.size()};
}

//===-- messages --------------------------------------------------------------===//

std::vector<HeadRows> RowEntries::rowsThatTravel(const Hop &hop) const {
  if (tensor.isOfHeads)
    return hop.parts;
  return {ofAllHeads(hop.parts)};
}

RowEntries::Letter RowEntries::letterOf(size_t step, const Hop &hop, Memory &memory) const {
  Letter letter{&hop, {}, nullptr, 0};
  const std::vector<HeadRows> travelling = rowsThatTravel(hop);
  const std::vector<ShardLaunch> &launches = stepOf(step, hop.to).launches;
  for (size_t number = 0; number < launches.size(); ++number)
    for (size_t part = 0; launches[number].window >= 0 && part < travelling.size(); ++part)
      for (const RowRun &run : travelling[part].rows) {
        const HeadRange ofHeads{travelling[part].firstHead, travelling[part].heads};
        const RowRun inside = clipped(run, launches[number].columns);
        if (inside.count == 0)
          continue;
        letter.pieces.push_back({number, ofHeads, inside});
        letter.bytes += uint64_t(batches * ofHeads.count * inside.count * widthOf(hop.to, launches[number]));
      }
  letter.message = memory.take(int64_t(letter.bytes));
  return letter;
}

template <class PlaceOf>
void RowEntries::addCopies(size_t step, const Letter &letter, bool isPacked, const PlaceOf &here,
                           std::vector<RowCopy> &copies) const {
  char *message = letter.message;
  for (const Piece &piece : letter.pieces) {
    const int64_t width = widthOf(letter.hop->to, stepOf(step, letter.hop->to).launches[piece.launch]);
    const int64_t head = piece.rows.count * width;
    const RowPlace packed{message, piece.heads.count * head, width, head, width};
    const RowPlace there = here(piece, width).at(0, piece.heads.first).withRowStep(piece.rows.rate);
    copies.push_back(
        {isPacked ? packed : there, isPacked ? there : packed, batches, piece.rows.count, piece.heads.count});
    message += batches * piece.heads.count * head;
  }
}

Status RowEntries::send(size_t step, ShardDevice &device, Exchange &exchange) const {
  std::vector<RowCopy> copies;
  for (const Letter &letter : steps[step].sent) {
    auto here = [&](const Piece &piece, int64_t width) {
      const ShardLaunch &launch = stepOf(step, letter.hop->to).launches[piece.launch];
      return ownRows(keysOf(letter.hop->to, launch), width).at(placeOfRow(rows, piece.rows.first), 0);
    };
    addCopies(step, letter, /*isPacked=*/true, here, copies);
    if (letter.bytes)
      exchange.sends.push_back({letter.hop->to, letter.message, letter.bytes});
  }
  for (const Letter &letter : steps[step].received)
    if (letter.bytes)
      exchange.receives.push_back({letter.hop->from, letter.message, letter.bytes});
  return device.copyAll(copies, Queue::link);
}

/// Kernels score rows that nobody keeps as well: what nothing is written to is zero.
Status RowEntries::place(size_t step, ShardDevice &device) const {
  const std::vector<ShardLaunch> &launches = stepOf(step, rank).launches;
  std::vector<int64_t> written(launches.size(), 0); // rows of heads
  std::vector<RowCopy> copies;
  for (const Letter &letter : steps[step].received) {
    auto here = [&](const Piece &piece, int64_t) {
      const int64_t row = piece.rows.first - launches[piece.launch].columns.begin;
      written[piece.launch] += piece.rows.count * piece.heads.count;
      return windowOf(step, piece.launch).at(row, 0);
    };
    addCopies(step, letter, /*isPacked=*/false, here, copies);
  }
  for (size_t number = 0; number < launches.size(); ++number) {
    const ShardLaunch &launch = launches[number];
    if (launch.window < 0)
      continue;
    for (const RowRange &range : rows)
      if (const RowRange own = common(range, launch.columns); own.begin < own.end) {
        const RowPlace from = ownRows(keysOf(rank, launch), widthOf(rank, launch)).at(placeOfRow(rows, own.begin), 0);
        copies.push_back(
            {windowOf(step, number).at(own.begin - launch.columns.begin, 0), from, batches, own.size(), heads()});
        written[number] += own.size() * heads();
      }
    const RowPlace window = windowOf(step, number);
    if (written[number] < launch.columns.size() * heads())
      HEDDLE_TRY(device.clear(window.base, uint64_t(batches * window.batchStride), Queue::compute));
  }
  return device.copyAll(copies, Queue::compute);
}

} // namespace heddle
