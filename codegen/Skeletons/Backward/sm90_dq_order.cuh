// Query gradients in the order of the keys, so that bits do not depend on the run: a key tile adds to a query tile once
// the one before it in its class has, if that visits the tile at all (dialect/Geometry/ConsecutiveTiles.h). CUDA does
// not promise to start blocks by their index, so each takes its number from a counter when it begins (StartOrder), and
// nobody waits for a block that has not begun. Where the last key tile comes first (kRasterReversed), "before" means
// the next higher one.
// A warp takes the turns and another passes them on, so that those who add wait for neither a word on its way through
// L2 nor a fence, some 700 and 1,450 clocks of an H200: they go through a ring of turns, taken, added, empty. What was
// written before an arrival or a word is seen by whoever sees that.
#pragma once

#include "Backward/sm90_backward_shared.cuh"
#include "Backward/sm90_ordered_walk.cuh"
#include "Ptx/warp.cuh"

namespace heddle {

// What a word says once `turns` items of a class have had theirs, beside kOrderHasSums.
DEV uint32_t wordOf(uint32_t turns) { return 2 * turns; }

// How many items of its class have their turn before an item.
template <class K> DEV uint32_t turnsBefore(const ParamsOf<K> &p, const KeyItem<K> &item) {
  return (OrderedWalk<K>::kAscends ? KeyItem<K>::itemsPerHead(p) - 1 - item.number : item.number) / kOrderRate<K>;
}

template <class K> struct Turn {
  int32_t word; // among those of all tiles; -1: none follows
  int32_t hasSums;

  DEV static Turn read(int32_t slot) {
    const auto record = loadRecord<TurnRecord>(K::turnRecord(slot));
    return {record.word, record.hasSums};
  }
  DEV void write(int32_t slot) const { storeRecord(K::turnRecord(slot), TurnRecord{word, hasSums}); }
};

// The warp that takes the turns of all tiles that an item visits, and of those between.
template <class K> class TurnTaker {
  using Params = ParamsOf<K>;
  using OrderedWalk = heddle::OrderedWalk<K>;
  using Turn = heddle::Turn<K>;

public:
  DEV TurnTaker(const Params &p, const KeyItem<K> &item)
      : p(p), item(item), turns(kFills), before(turnsBefore(p, item)),
        edge(OrderedWalk::edgeOfTileBefore(p, makeContext(p, item.batch, item.head), item)) {}

  DEV void run() {
    const Context<K> context = makeContext(p, item.batch, item.head);
    OrderedWalk walk(context, item, KeyItem<K>::headsOfItem(p));
    QueryTile tile;
    int32_t last = kNone;
#pragma unroll 1
    while (walk.next(tile)) {
      const ClassTile place = walk.place();
      if (last != kNone && last != place.number)
        passBetween(last, place);
      last = place.number;
      hand(take(tile.head, place));
    }
    hand({-1, 0});
  }

private:
  DEV void passBetween(int32_t last, ClassTile place) const {
    const int32_t wanted = place.number;
#pragma unroll 1
    for (place.number = last + kStep; place.number != wanted; place.number += kStep)
#pragma unroll 1
      for (int32_t head = item.head; head < item.head + KeyItem<K>::headsOfItem(p); ++head) {
        const Turn turn = take(head, place);
        ptx::fenceGlobal();
        if (isLastLane())
          ptx::storeCoherent4(orders() + turn.word, wordOf(before + 1) + turn.hasSums);
      }
  }

  DEV Turn take(int32_t head, const ClassTile &place) const {
    const int32_t word = orderWord<K>(item.batch * p.heads + head, p.seqlenQ, place);
    if (OrderedWalk::kAscends ? place.number < edge : place.number > edge)
      return {word, 0};
    uint32_t state;
    do
      state = ptx::loadAcquire4(orders() + word);
    while ((state & ~kOrderHasSums) != wordOf(before));
    return {word, static_cast<int32_t>(state & kOrderHasSums)};
  }

  DEV void hand(const Turn &turn) {
    turns.acquire();
    if (isLastLane()) {
      turn.write(turns.slot());
      ptx::arrive(turns.full());
    }
    turns.next();
  }

  DEV uint32_t *orders() const { return static_cast<uint32_t *>(p.between); }

  static constexpr int32_t kNone = -1, kStep = OrderedWalk::kAscends ? 1 : -1;
  const Params &p;
  const KeyItem<K> &item;
  Pipeline<kTurnStages, typename K::TurnsToTake> turns;
  uint32_t before;
  int32_t edge;
};

// The warp that passes turns on.
template <class K> class TurnPasser {
  using Params = ParamsOf<K>;
  using Turn = heddle::Turn<K>;

public:
  DEV TurnPasser(const Params &p, const KeyItem<K> &item) : p(p), turns(kReads), before(turnsBefore(p, item)) {}

  DEV void run() {
#pragma unroll 1
    for (;;) {
      turns.waitFull();
      const Turn turn = Turn::read(turns.slot());
      __syncwarp();
      turns.release();
      if (turn.word < 0)
        return;
      turns.next();
      ptx::fenceGlobal();
      if (isLastLane())
        ptx::storeCoherent4(static_cast<uint32_t *>(p.between) + turn.word, wordOf(before + 1) + kOrderHasSums);
    }
  }

private:
  const Params &p;
  Pipeline<kTurnStages, typename K::TurnsToPass> turns;
  uint32_t before;
};

// The turns as those see them who add.
template <class K> class SumTurns {
public:
  DEV SumTurns() : turns(kReads) {}

  // Waits until the tile is this block's. True: it has sums, false: what they are added to is not written.
  DEV bool await() const {
    turns.waitFull();
    return Turn<K>::read(turns.slot()).hasSums;
  }

  DEV void leave() {
    __syncwarp();
    turns.release();
    turns.next();
  }

  DEV void end() {
    await();
    leave();
  }

private:
  Pipeline<kTurnStages, typename K::TurnsToAdd> turns;
};

// What kernels have whose sums are added in no order.
struct NoTurns {
  DEV bool await() const { return true; }
  DEV void leave() const {}
  DEV void end() const {}
};

// The number of a block is how many have begun before it. The counter is the word behind those of all tiles.
template <class K> struct StartOrder {
  // One thread takes it; the block sees it once it was synchronised.
  DEV static void take(const ParamsOf<K> &p) {
    if (threadIdx.x != K::kThreads - 1)
      return;
    uint32_t *const counter =
        static_cast<uint32_t *>(p.between) + orderWord<K>(p.batch * p.heads, p.seqlenQ, ClassTile{kOrderRate<K>, 0, 0});
    ptx::storeShared4(K::kBlockNumber, ptx::addGlobal(counter, 1));
  }
  DEV static int32_t number() { return ptx::valueOfLane(ptx::loadShared4(K::kBlockNumber), 0); }
};

template <class K> struct IndexOrder {
  DEV static void take(const ParamsOf<K> &) {}
  DEV static int32_t number() { return blockIdx.x; }
};

template <class K, bool InOrder = K::kHasOrder> struct OrderOf {
  using Walk = TileWalk<KeyItem<K>>;
  using Sums = NoTurns;
  using Blocks = IndexOrder<K>;
};
template <class K> struct OrderOf<K, true> {
  using Walk = OrderedWalk<K>;
  using Sums = SumTurns<K>;
  using Blocks = StartOrder<K>;
};

} // namespace heddle
