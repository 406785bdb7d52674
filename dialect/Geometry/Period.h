// Owns the order in which numbers [0, count) are summed: in turns of a period, by rectangles of steps and turns that
// evaluate alike (SweepDomain), and the choice of the period.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace heddle::attn {

/// Numbers by step and turn: number = step + turn * period.
struct Rectangle {
  int64_t step, turn, steps, turns;
};

/// Numbers of one period for positions `step` apart, up to `extent`: every number if a period saves nothing. Divisors
/// of positions repeat in it, but for those that are rarer met outside it than a period with them has bends.
int64_t choosePeriod(std::vector<int64_t> divisors, int64_t step, int64_t extent);

/// Covers [0, count) with rectangles: `visit(all)` returns one at the first corner of `all`, or one without steps to
/// end it all.
template <class Visit> void coverByRectangles(int64_t count, int64_t period, Visit visit) {
  if (count == 0)
    return;
  period = std::min(period, count);
  std::vector<Rectangle> open = {{0, 0, period, count / period}};
  if (count % period > 0)
    open.push_back({0, count / period, count % period, 1});
  while (!open.empty()) {
    const Rectangle all = open.back(), done = visit(all);
    open.pop_back();
    if (done.steps == 0)
      return;
    if (done.turns < all.turns)
      open.push_back({all.step, all.turn + done.turns, done.steps, all.turns - done.turns});
    if (done.steps < all.steps)
      open.push_back({all.step + done.steps, all.turn, all.steps - done.steps, all.turns});
  }
}

} // namespace heddle::attn
