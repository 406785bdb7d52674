// Deals out the work: all units of all lines, one behind the other, are a row of key tiles, which is cut into equal pieces,
// one for each block. Which piece a tile lies in follows from its number, so blocks tell each other nothing.
#pragma once

#include "Decode/decode_lines.cuh"
#include "Ptx/memory.cuh"
#include "Ptx/scalar.cuh"

namespace heddle {

// A word that all threads of the block get from one, or the sums of the block's warps. Between two uses lies a barrier.
class BlockWords {
public:
  DEV explicit BlockWords(uint32_t address) : address(address) {}

  DEV void store(int32_t place, int64_t word) const {
    ptx::storeShared8(address + place * 8, static_cast<int32_t>(word), static_cast<int32_t>(word >> 32));
  }
  DEV int64_t load(int32_t place) const {
    int32_t words[2];
    ptx::loadShared8(address + place * 8, words);
    return static_cast<int64_t>(words[1]) << 32 | static_cast<uint32_t>(words[0]);
  }

private:
  uint32_t address;
};
constexpr int kParkedWord = 16; // words from here on are those of parked structs

// What is the same in all threads and not looked at for long, in shared memory instead of registers. Barriers lie between
// two uses, and between park() and unpark().
template <class T> DEV void park(uint32_t address, const T &what) {
  static_assert(sizeof(T) % 8 == 0 && kParkedWord * 8 + sizeof(T) <= decode::kControlBytes,
                "words of 64 bits, as many as fit");
  const int32_t *const words = reinterpret_cast<const int32_t *>(&what);
  if (threadIdx.x == 0)
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(T) / 8); ++i)
      ptx::storeShared8(address + (kParkedWord + i) * 8, words[2 * i], words[2 * i + 1]);
}
template <class T> DEV void unpark(uint32_t address, T &what) {
  int32_t *const words = reinterpret_cast<int32_t *>(&what);
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(T) / 8); ++i) {
    int32_t pair[2];
    ptx::loadShared8(address + (kParkedWord + i) * 8, pair);
    words[2 * i] = pair[0], words[2 * i + 1] = pair[1];
  }
}

// What the threads before this one have, and all together.
struct BlockSum {
  int64_t before, all;
};

// The sum over this lane and those before it.
DEV int64_t sumOfWarp(int64_t own) {
  const int32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int64_t other = __shfl_sync(kWholeWarp, own, max(lane - distance, 0));
    own += lane >= distance ? other : 0;
  }
  return own;
}

template <class K> DEV BlockSum sumOfBlock(const BlockWords &words, int64_t own) {
  const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t sum = sumOfWarp(own);
  __syncthreads();
  if (lane == 31)
    words.store(warp, sum);
  __syncthreads();
  BlockSum result = {sum - own, 0};
#pragma unroll
  for (int i = 0; i < K::kWarps; ++i) {
    const int64_t ofWarp = words.load(i);
    result.before += i < warp ? ofWarp : 0;
    result.all += ofWarp;
  }
  return result;
}

// Numbers fit 32 bits nearly always, and are divided in a fifth of the instructions then.
DEV int64_t quotient(int64_t a, int64_t b) {
  if ((a | b) >> 32 == 0)
    return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

template <class K> DEV int64_t evenQuota(int64_t tiles) {
  const int64_t blocks = ptx::rereadGridSize();
  if (tiles <= blocks * K::kPieceTiles)
    return K::kPieceTiles;
  return quotient(tiles + blocks - 1, blocks);
}

// Units of the same length are shared by as many blocks each, or blocks have as many whole units each, where a block does
// not get an eighth more than an even share by it: no block has parts of two units then. Their length is raised to whole
// pieces, of which the last one may lack some tiles.
template <class K> struct EqualUnits {
  int64_t quota;
  int32_t unitWork;

  DEV EqualUnits(int32_t units, int32_t tiles)
      : quota(evenQuota<K>(static_cast<int64_t>(units) * tiles)), unitWork(tiles) {
    constexpr uint32_t kLeast = K::kPieceTiles;
    const uint32_t blocks = ptx::rereadGridSize(), count = units, length = tiles;
    const uint32_t shortPieces = (length + kLeast - 1) / kLeast;
    if (static_cast<uint64_t>(count) * shortPieces <= blocks)
      accept(min(kLeast, length), length < kLeast ? length : shortPieces * kLeast);
    else if (count > blocks)
      accept(static_cast<int64_t>(shareOf(count, blocks)) * length, length);
    else
      acceptParts(length, shareOf(length, blocks / max(count, 1u)));
  }

  // Of `units` that take `tiles`: pieces of whole steps, a power of two, where blocks share units.
  DEV void alignTo(int32_t step, int32_t units, int32_t tiles) {
    if (step == 1 || quota == step || quota >= tiles)
      return;
    const uint32_t piece = (static_cast<uint32_t>(quota) + step - 1) & -step, pieces = shareOf(tiles, piece);
    if (static_cast<uint64_t>(units) * pieces > static_cast<uint32_t>(ptx::rereadGridSize()))
      return;
    quota = piece;
    unitWork = pieces * piece;
  }

private:
  DEV void acceptParts(uint32_t length, uint32_t piece) { accept(piece, shareOf(length, piece) * piece); }
  DEV static uint32_t shareOf(uint32_t all, uint32_t count) { return (all + count - 1) / count; }
  DEV void accept(int64_t aligned, uint32_t raised) {
    if (aligned > quota + quota / 8)
      return;
    quota = aligned;
    unitWork = raised;
  }
};

// The tiles of this block: from `first` on, `count` of them, the first one in line `line`, which begins at `lineFirst`.
template <class K> struct Piece {
  int64_t quota, first, lineFirst; // quota: tiles of a piece; 0: not yet known
  int32_t count, line, lines;

  DEV bool isEmpty() const { return count <= 0; }
  // With `all` tiles to deal out, by the quota where there is one.
  DEV void deal(int64_t all) {
    if (quota == 0)
      quota = evenQuota<K>(all);
    first = blockIdx.x * quota;
    count = static_cast<int32_t>(max(min(quota, all - first), static_cast<int64_t>(0)));
  }
};

// The block whose piece a tile lies in.
DEV int32_t blockOf(int64_t tile, int64_t quota) { return static_cast<int32_t>(quotient(tile, quota)); }

// The work of the line with this number; none where it is behind the last one. All lanes of a warp call.
template <class K> DEV int64_t workOfLine(const ParamsOf<K> &p, int32_t number, int32_t lines) {
  const int64_t work = readLine<K>(p, min(number, lines - 1)).work();
  return number < lines ? work : 0;
}

template <class K> DEV Line<K> lineOfLane(const Line<K> &own, int32_t lane) {
  const auto of = [lane](int32_t word) { return __shfl_sync(kWholeWarp, word, lane); };
  return Line<K>{KeyShare<K>::ofLane(own, of),
                 LineParts<K>::ofLane(own, of),
                 Sequence<K>::ofLane(own.sequence, of),
                 of(own.head),
                 of(own.variantOfHead),
                 of(own.rowsOfUnit),
                 of(own.tilesOfClass),
                 of(own.units),
                 of(own.unitWork)};
}

// Every warp by itself: there are at most as many lines as lanes.
template <class K> DEV void findInWarp(const ParamsOf<K> &p, Piece<K> &piece, Line<K> &line) {
  const int32_t lane = threadIdx.x % 32;
  Line<K> ofLane = readLine<K>(p, min(lane, piece.lines - 1));
  if (piece.lines == 1) { // nothing to sum and to tell
    EqualUnits<K> equal(ofLane.units, ofLane.unitWork);
    equal.alignTo(ofLane.step(), ofLane.units, ofLane.unitWork);
    piece.quota = equal.quota;
    ofLane.unitWork = equal.unitWork;
    piece.deal(ofLane.work());
    line = ofLane;
    return;
  }
  const int32_t tiles = __reduce_max_sync(kWholeWarp, ofLane.unitWork);
  if (tiles == __reduce_min_sync(kWholeWarp, ofLane.unitWork)) {
    const int32_t units = __reduce_add_sync(kWholeWarp, lane < piece.lines ? ofLane.units : 0);
    EqualUnits<K> equal(units, tiles);
    equal.alignTo(ofLane.stepOfWarp(), units, tiles);
    piece.quota = equal.quota;
    ofLane.unitWork = equal.unitWork;
  }
  const int64_t own = lane < piece.lines ? ofLane.work() : 0, sum = sumOfWarp(own);
  piece.deal(__shfl_sync(kWholeWarp, sum, 31));
  const bool isHere = sum - own <= piece.first && piece.first < sum;
  piece.line = max(__ffs(__ballot_sync(kWholeWarp, isHere)) - 1, 0); // no lane: nothing is left for this block
  piece.lineFirst = __shfl_sync(kWholeWarp, sum - own, piece.line);
  line = lineOfLane(ofLane, piece.line);
}

// The number that all threads of the block have between their shortest and their longest; 0 where there are several.
template <class K> DEV int32_t onlyNumber(const BlockWords &words, int32_t shortest, int32_t longest) {
  const int32_t place = K::kWarps + threadIdx.x / 32;
  shortest = __reduce_min_sync(kWholeWarp, shortest);
  longest = __reduce_max_sync(kWholeWarp, longest);
  if (threadIdx.x % 32 == 0)
    words.store(place, shortest == longest ? longest : 0);
  __syncthreads();
  const int64_t only = words.load(K::kWarps);
  bool isOnly = true;
#pragma unroll
  for (int i = 1; i < K::kWarps; ++i)
    isOnly &= words.load(K::kWarps + i) == only;
  return isOnly ? static_cast<int32_t>(only) : 0;
}

// All threads of the block call.
template <class K> DEV void findInBlock(const ParamsOf<K> &p, const BlockWords &words, Piece<K> &piece, Line<K> &line) {
  const int32_t thread = threadIdx.x;
  int64_t own = 0, last = 0;
  int32_t shortest = kNoTile, longest = 0;
#pragma unroll 1
  for (int32_t first = 0; first < piece.lines; first += K::kThreads) {
    const Line<K> ofThread = readLine<K>(p, min(first + thread, piece.lines - 1));
    own += last = first + thread < piece.lines ? ofThread.work() : 0;
    shortest = min(shortest, ofThread.unitWork);
    longest = max(longest, ofThread.unitWork);
  }
  BlockSum sum = sumOfBlock<K>(words, own);
  if (const int32_t tiles = onlyNumber<K>(words, shortest, longest); tiles > 0) {
    const EqualUnits<K> equal(static_cast<int32_t>(quotient(sum.all, tiles)), tiles);
    if (equal.unitWork == tiles) // lines are read anew, with this length
      piece.quota = equal.quota;
  }
  piece.deal(sum.all);
  if (piece.isEmpty())
    return;
  int64_t passed = 0;
#pragma unroll 1
  for (int32_t first = 0; passed <= piece.first; first += K::kThreads) {
    if (piece.lines > K::kThreads) { // else the sums are those of lines
      last = workOfLine<K>(p, first + thread, piece.lines);
      sum = sumOfBlock<K>(words, last);
    }
    __syncthreads();
    const int64_t begin = passed + sum.before;
    if (begin <= piece.first && piece.first < begin + last) {
      words.store(0, begin);
      words.store(1, first + thread);
    }
    passed += sum.all;
  }
  __syncthreads();
  piece.lineFirst = words.load(0);
  piece.line = static_cast<int32_t>(words.load(1));
  line = readLine<K>(p, piece.line);
}

// `line`: that of its first tile.
template <class K> DEV Piece<K> findPiece(const ParamsOf<K> &p, const BlockWords &words, Line<K> &line) {
  Piece<K> piece = {0, 0, 0, 0, 0, KeyShare<K>::groups(p) + p.sequences * linesOfSequence<K>(p)};
  if (piece.lines > 32)
    findInBlock(p, words, piece, line);
  else if (piece.lines > 0)
    findInWarp(p, piece, line);
  return piece;
}

} // namespace heddle
