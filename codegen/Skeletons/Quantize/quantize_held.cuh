// Pieces read once: a block keeps them in shared memory from when they are loaded until their head is known.
//
// kSlots pieces of a block lie there: the oldest are measured and wait for their heads, kAhead newer ones are under way.
// Of each new one that is measured the block converts the oldest, which waits for pieces of its own heads alone. Where the
// new one is of these itself, the block has no room for its part of a head: it lets the new one go, and reads it again at
// the end. So a block waits only where all that it has not measured has higher numbers than what it waits for, which
// blocks that run have taken: nothing is assumed about how many run at a time. Each thread copies, measures and converts
// the same elements, so that no barrier is between these. Two more warps have no elements, and are one piece ahead of the
// others: one takes numbers and finds where their pieces lie, which takes as long as a piece of 8 KB; the other tells other
// blocks what the block has found, and asks for heads. Of each piece there is a word, which says by itself that it is there.
#pragma once

#include "Ptx/async_copy.cuh"
#include "Quantize/quantize_heads.cuh"

namespace heddle {

// Pieces by their places in shared memory, first in, first out; every thread has the same.
struct Queue {
  uint64_t places = 0;
  int32_t count = 0;
  DEV int32_t front() const { return static_cast<int32_t>(places & 15); }
  DEV void push(int32_t place) { places |= static_cast<uint64_t>(place) << 4 * count++; }
  DEV int32_t pop() {
    const int32_t place = front();
    places >>= 4;
    --count;
    return place;
  }
};

template <class K> DEV uint32_t addressInSlot(uint32_t slots, int32_t slot, int unit, int piece) {
  constexpr int kRun = K::kUnitThreads * kPieceBytes;
  const int run = (slot * K::kUnits + unit) * K::kUnitPieces + piece;
  return slots + run * kRun + threadIdx.x * kPieceBytes;
}

template <int Dim, class K> DEV void copyRows(const PiecePlace<K> &place, uint32_t slots, int32_t slot) {
  const UnitPlace<K, Dim> own;
#pragma unroll
  for (int unit = 0; unit < K::kUnits; ++unit) {
    const char *from = place.from + own.row(unit) * place.fromBytes + own.column * K::kElementBytes;
#pragma unroll
    for (int piece = 0; piece < K::kUnitPieces; ++piece)
      ptx::copyAsync16OrZero(addressInSlot<K>(slots, slot, unit, piece), from + piece * kPieceBytes,
                             own.isIn(place.rows, unit));
  }
}

template <class K> DEV void copyToSlot(const Piece<K> &piece, uint32_t slots) {
  if (K::kDimsDiffer && piece.place.isOfValues)
    copyRows<K::kValueDim>(piece.place, slots, piece.slot);
  else
    copyRows<K::kHeadDim>(piece.place, slots, piece.slot);
  ptx::commitCopies();
}

template <class K> DEV void loadFromSlot(uint32_t slots, int32_t slot, Unit<K> (&units)[K::kUnits]) {
#pragma unroll
  for (int unit = 0; unit < K::kUnits; ++unit)
#pragma unroll
    for (int piece = 0; piece < K::kUnitPieces; ++piece) {
      int32_t words[4];
      ptx::loadShared16(addressInSlot<K>(slots, slot, unit, piece), words);
#pragma unroll
      for (int word = 0; word < 4; ++word)
        units[unit][4 * piece + word] = static_cast<uint32_t>(words[word]);
    }
}

// Words of a head that each lane of the warp asks for at once; zero: not there.
constexpr int kWordsOfLane = 8;
template <class K> DEV bool loadFound(const PiecePlace<K> &place, int32_t first, uint32_t &largest) {
  bool isMissing = false;
  uint32_t words[kWordsOfLane];
#pragma unroll
  for (int word = 0; word < kWordsOfLane; ++word) {
    const int32_t piece = first + word * 32 + ptx::laneOfWarp();
    words[word] = piece < place.piecesOfHead ? ptx::loadCoherent4(place.found + piece) : 1;
  }
#pragma unroll
  for (int word = 0; word < kWordsOfLane; ++word) {
    isMissing |= words[word] == 0;
    largest = max(largest, words[word]);
  }
  return ptx::lanesWhere(isMissing) == 0;
}

// The largest magnitude of a head, its bits, when all its pieces are there; all lanes of a warp.
template <class K> DEV uint32_t waitForFound(const PiecePlace<K> &place) {
  uint32_t largest = 1;
#pragma unroll 1
  for (int32_t first = 0; first < place.piecesOfHead; first += 32 * kWordsOfLane)
    while (!loadFound(place, first, largest))
      ;
  return static_cast<uint32_t>(ptx::largestOfWarp(static_cast<int32_t>(largest))) - 1;
}

// The factor of a head, kept for those of its pieces that follow; all lanes of a warp.
template <class K> struct KnownFactor {
  const uint32_t *counters = nullptr;
  float factor = 0;
  DEV float of(const PiecePlace<K> &place) {
    if (counters != place.counters || place.descale)
      factor = factorOf(place, place.columns ? waitForCounted(place) : waitForFound(place));
    counters = place.counters;
    return factor;
  }
};

// Of one thread: numbers of pieces that the block has let go, each leading to the one before.
struct Dropped {
  int32_t *before;
  int32_t newest = -1;
  DEV void push(int32_t number) {
    before[number] = newest;
    newest = number;
  }
  DEV int32_t pop() {
    const int32_t number = newest;
    if (number >= 0)
      newest = before[number];
    return number;
  }
};

template <class K> DEV void fill(const QuantizeParams<K> &p, Piece<K> &piece, int32_t number, int32_t slot) {
  piece.place = placeOf<K>(p, number);
  piece.number = number;
  piece.slot = slot;
}

// What a thread without elements does: all lanes of one warp ask, one lane of the other takes numbers.
template <class K> struct ControlPlace {
  bool isOfControl, asks, tells, takes;
  DEV ControlPlace() {
    const int32_t thread = static_cast<int32_t>(threadIdx.x) - K::kUnitThreads;
    isOfControl = thread >= 0, asks = isOfControl && thread < 32, tells = thread == 0, takes = thread == 32;
  }
};

template <class K>
DEV void convertDropped(const QuantizeParams<K> &p, Piece<K> *pieces, Dropped &dropped, KnownFactor<K> &known) {
  const ControlPlace<K> own;
  for (int turn = 0;; turn ^= 1) {
    Piece<K> &piece = pieces[turn];
    if (own.takes)
      fill(p, piece, dropped.pop(), 0);
    __syncthreads();
    if (!piece.place.counters)
      return;
    Unit<K> units[K::kUnits];
    load<true>(piece.place, units); // of the warp without elements: no rows
    if (own.asks)
      piece.factor = known.of(piece.place);
    __syncthreads();
    store(p, piece.place, units, piece.factor);
  }
}

// What becomes of a piece when it is measured.
struct Step {
  int32_t current, oldest, incoming; // places of pieces
  bool isPiece, isDropped, converts;
};

template <int Held, class K> DEV Step stepOf(const Piece<K> *pieces, Queue &underWay, const Queue &held, Queue &spare) {
  Step step;
  step.current = underWay.pop(), step.oldest = held.front(), step.incoming = spare.pop();
  const bool isFull = held.count == Held;
  step.isPiece = pieces[step.current].place.counters;
  step.isDropped = step.isPiece && isFull && pieces[step.current].number <= pieces[step.oldest].place.lastOfHeads;
  step.converts = !step.isDropped && (isFull || (!step.isPiece && held.count > 0));
  return step;
}

template <class K, int Slots, int Ahead>
DEV void walkHeld(const QuantizeParams<K> &p, unsigned char *control, uint32_t slots, float *columnRows) {
  constexpr int kHeld = Slots - Ahead, kPieces = quantize::piecesHere(Slots); // one more is filled, one still read
  static_assert(kPieces <= 16 && Ahead >= 1 && kHeld >= 1, "numbers of four bits");
  static_assert(kPieces * sizeof(Piece<K>) <= quantize::controlBytes(K::kWarps, Slots, K::kScaleRows),
                "quantize_layout.cuh reserves it");
  Piece<K> *const pieces = reinterpret_cast<Piece<K> *>(control);
  const ControlPlace<K> own;
  Queue underWay, held, spare;
  Dropped dropped = {p.dropped};
  KnownFactor<K> known;
  int32_t number = 0; // of who takes them: the next one
  if (own.takes) {
    number = static_cast<int32_t>(ptx::addGlobal(p.counters, Ahead + 1));
#pragma unroll 1
    for (int slot = 0; slot < Ahead; ++slot)
      fill(p, pieces[slot], number++, slot);
  }
  __syncthreads();
#pragma unroll 1
  for (int slot = 0; slot < Ahead; ++slot) {
    if (!own.isOfControl)
      copyToSlot(pieces[slot], slots);
    underWay.push(slot);
  }
#pragma unroll 1
  for (int place = Ahead; place < kPieces; ++place)
    spare.push(place);
  for (;;) {
    const Step step = stepOf<kHeld>(pieces, underWay, held, spare);
    if (!step.isPiece && !step.converts)
      break;
    Piece<K> &piece = pieces[step.current], &oldest = pieces[step.oldest];
    const int32_t freed = step.isDropped ? piece.slot : step.converts ? oldest.slot : Ahead + held.count;
    Unit<K> units[K::kUnits];
    if (own.takes) {
      const int32_t next = static_cast<int32_t>(ptx::addGlobal(p.counters, 1)); // under way meanwhile
      fill(p, pieces[step.incoming], number, freed);
      number = next;
      if (step.isDropped)
        dropped.push(piece.number);
    }
    if (own.asks && step.converts)
      oldest.factor = known.of(oldest.place);
    if (!own.isOfControl) {
      ptx::waitCopies<Ahead - 1>();
      loadFromSlot<K>(slots, piece.slot, units);
    }
    if (piece.place.columns)
      measureColumns(p, piece.place, units, columnRows);
    else if (!own.isOfControl)
      measure(p, units, piece);
    __syncthreads();
    if (piece.place.columns)
      publishColumns(piece);
    else if (own.tells && step.isPiece)
      ptx::storeCoherent4(piece.place.found + piece.place.piece, __float_as_uint(largestOfPiece(piece)) + 1);
    if (!own.isOfControl) {
      if (step.converts) {
        loadFromSlot<K>(slots, freed, units);
        store(p, oldest.place, units, oldest.factor);
      }
      copyToSlot(pieces[step.incoming], slots);
    }
    if (step.converts)
      spare.push(held.pop());
    underWay.push(step.incoming);
    if (step.isPiece && !step.isDropped)
      held.push(step.current);
    else
      spare.push(step.current);
  }
  __syncthreads();
  convertDropped(p, pieces, dropped, known);
}

} // namespace heddle
