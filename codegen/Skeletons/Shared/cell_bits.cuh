// The next cell of a list, found by bits of cells: a warp goes through the list of a row once and notes what it names
// in one window of cells, a bit each, and questions about that row are answered by these bits until another list takes
// their place. Which memory holds them is said by the traits (Ptx/warp.cuh); without any, kHasMemory is false and
// nobody asks. All lanes of the warp ask together, with the same arguments.
#pragma once

#include "Ptx/warp.cuh"
#include "Shared/cell_layout.cuh"
#include "Shared/repeat.cuh"

namespace heddle {

constexpr int32_t kNoListedCell = 0x7fffffff;

// Tells lists apart: equal numbers, equal lists.
struct ListKey {
  int32_t row, words[5];

  DEV bool operator==(const ListKey &other) const {
    bool isSame = row == other.row;
    repeat<5>([&](int i) { isSame &= words[i] == other.words[i]; });
    return isSame;
  }
};

// The bits of one list, 32 a word, and behind them its key, the first cell of the window and the first listed one
// behind it.
template <class Traits> class CellBits {
public:
  static constexpr bool kHasMemory = ptx::CellMemory<Traits>::kExists;
  static constexpr int32_t kCells = 32 * ptx::kWarpLanes; // of a window
  static constexpr int32_t kSlotWords = cellSlotWords(ptx::kWarpLanes), kSlots = kCellSlots;
  static_assert((kSlots & (kSlots - 1)) == 0, "a row has its slot by its last bits");

  DEV explicit CellBits(int32_t row) : at((row & (kSlots - 1)) * kSlotWords) {}

  // The first listed cell at or after `from`, of each lane's own list. List: key(), length() and cell(index) for
  // 0 <= index < length(), in any order; cells below 0 are none. Lanes that ask for cells of one window of one list get their
  // answers at once.
  template <class List> DEV static int32_t next(const List &mine, int32_t from) {
    int32_t cell = max(from, 0); // where the search begins, then what it found
    uint32_t waiting = 0xffffffff >> (32 - ptx::kWarpLanes);
#pragma unroll 1
    while (waiting != 0) {
      const int32_t asking = ptx::lowestBitOf(waiting), window = windowOf(ptx::valueOfLane(cell, asking));
      const List theirs = mine.ofLane(asking);
      const CellBits bits(theirs.row);
      if (!bits.isNoted(theirs.key(), window))
        bits.note(theirs, window);
      const bool isMine = (waiting >> ptx::laneOfWarp() & 1) && mine.key() == theirs.key() && windowOf(cell) == window;
      const int32_t found = bits.find(window, isMine ? cell - window : 0);
      cell = isMine ? found : cell;
      waiting &= ~ptx::lanesWhere(isMine);
    }
    return cell;
  }

  // Nothing is noted. One thread, before the warp asks.
  DEV static void clear() {
    if (kHasMemory)
      for (int32_t slot = 0; slot < kSlots; ++slot)
        ptx::storeCellWord<Traits>(CellBits(slot).windowWord(), 0);
  }

private:
  DEV static int32_t windowOf(int32_t cell) { return cell & ~(kCells - 1); }
  DEV int32_t keyWord(int32_t number) const { return at + ptx::kWarpLanes + number; }
  DEV int32_t windowWord() const { return keyWord(6); }
  DEV int32_t behind() const { return keyWord(7); }

  DEV bool isNoted(const ListKey &key, int32_t window) const {
    ListKey noted;
    noted.row = ptx::loadCellWord<Traits>(keyWord(0));
    repeat<5>([&](int i) { noted.words[i] = ptx::loadCellWord<Traits>(keyWord(1 + i)); });
    return key == noted && ptx::loadCellWord<Traits>(windowWord()) == window + 1; // 0: nothing is noted yet
  }

  // The first listed cell at or behind a place in the window that is noted.
  DEV int32_t find(int32_t window, int32_t place) const {
    const uint32_t words = ptx::lanesWhere(wordAt(ptx::laneOfWarp()) != 0);
    const int32_t number = place / 32;
    const uint32_t own = wordAt(number) & 0xffffffffu << place % 32, others = words & 0xfffffffeu << number;
    if ((own | others) == 0)
      return ptx::loadCellWord<Traits>(behind());
    const int32_t nearest = own != 0 ? number : ptx::lowestBitOf(others);
    return window + 32 * nearest + ptx::lowestBitOf(own != 0 ? own : wordAt(nearest));
  }
  DEV uint32_t wordAt(int32_t number) const { return static_cast<uint32_t>(ptx::loadCellWord<Traits>(at + number)); }

  template <class List> DEV void note(const List &list, int32_t window) const {
    ptx::syncWarp(); // all lanes have read what was there
    ptx::storeCellWord<Traits>(at + ptx::laneOfWarp(), 0);
    ptx::syncWarp();
    int32_t nearest = kNoListedCell;
    const int32_t length = list.length();
#pragma unroll 1
    for (int32_t first = 0; first < length; first += ptx::kWarpLanes) {
      const int32_t index = first + ptx::laneOfWarp(), cell = list.cell(min(index, length - 1));
      const bool isHere = index < length && cell >= window, isInside = isHere && cell - window < kCells;
      const uint32_t place = static_cast<uint32_t>(isInside ? cell - window : 0);
      ptx::orCellWord<Traits>(at + static_cast<int32_t>(place / 32), static_cast<uint32_t>(isInside) << place % 32);
      nearest = isHere && !isInside ? min(nearest, cell) : nearest;
    }
    nearest = ptx::smallestOfWarp(nearest);
    if (ptx::laneOfWarp() == 0)
      noteKey(list.key(), window, nearest);
    ptx::syncWarp();
  }

  DEV void noteKey(const ListKey &key, int32_t window, int32_t nearest) const {
    ptx::storeCellWord<Traits>(keyWord(0), key.row);
    repeat<5>([&](int i) { ptx::storeCellWord<Traits>(keyWord(1 + i), key.words[i]); });
    ptx::storeCellWord<Traits>(windowWord(), window + 1);
    ptx::storeCellWord<Traits>(behind(), nearest);
  }

  int32_t at;
};

// All lanes answer one question after the other, together; lanes with the same question get the answer at once.
// answer() is called with the list of one lane and where its search begins, the same in all lanes.
template <class List, class Answer> DEV int32_t answerInTurn(const List &mine, int32_t from, Answer answer) {
  int32_t next = kNoListedCell;
  uint32_t waiting = 0xffffffff >> (32 - ptx::kWarpLanes);
#pragma unroll 1
  while (waiting != 0) {
    const int32_t asking = ptx::lowestBitOf(waiting);
    const List theirs = mine.ofLane(asking);
    const int32_t theirFrom = ptx::valueOfLane(from, asking);
    const int32_t found = answer(theirs, theirFrom);
    const bool isMine = mine.key() == theirs.key() && from == theirFrom;
    next = isMine ? found : next;
    waiting &= ~ptx::lanesWhere(isMine);
  }
  return next;
}

} // namespace heddle
