// The first launch of a cascade: which sequences are a group, and which key tiles they meet together. Sequences that follow
// each other are one where each shares many keys with the one before it; the tiles are those whose every key every query of
// theirs keeps. One block, which looks at as many sequences at a time as it has threads: no group is larger.
#pragma once

#include "Decode/decode_pieces.cuh"

namespace heddle {

// A sequence, or what a group has together.
template <class K> struct SharedKeys {
  int32_t rows, shared; // queries; keys shared with the sequence before
  int32_t begin, end;   // key tiles that all of its queries keep whole

  DEV static SharedKeys none() { return {0, 0, 0, 0}; }

  DEV static SharedKeys of(const ParamsOf<K> &p, int32_t number) {
    const Sequence<K> sequence = Sequence<K>::read(p, number, 0);
    SharedKeys keys = {sequence.rows, max(p.sharedK[number], 0), 0, 0};
    if (sequence.rows == 0 || sequence.rows * p.sharingHeads > max(cascade::kMostRows, p.sharingHeads))
      return none();
    using Pattern = typename K::Pattern;
    const Context<K> context = sequence.context(p, 0);
    const int32_t first = context.qOrigin, last = first + sequence.rows - 1, variant = Pattern::variant(context);
    const int32_t all = sequence.keys / K::kBlockN;
    for (int32_t from = 0; from < all && keys.begin == keys.end;) {
      const typename Pattern::Range range = Pattern::nextRange(context, variant, 0, first, last, K::kBlockN, from);
      if (range.begin == kNoTile)
        break;
      from = range.end;
      keys.begin = range.fullBegin, keys.end = max(min(range.fullEnd, all), range.fullBegin);
    }
    return keys;
  }

  // What both have.
  DEV void meet(const SharedKeys &other) {
    rows += other.rows;
    shared = min(shared, other.shared);
    begin = max(begin, other.begin);
    end = min(end, other.end);
  }
  // The tiles of a group of so many sequences; none, if they are not worth it.
  DEV void close(int32_t sequences) {
    end = min(end, shared / K::kBlockN);
    if (sequences == 1 || end - begin < cascade::kLeastTiles)
      begin = end = 0;
  }
};

// Those of the sequences that the block looks at, by their threads.
template <class K> class SharedKeysOfBlock {
public:
  DEV explicit SharedKeysOfBlock(uint32_t address) : address(address) {}

  DEV void store(int32_t place, const SharedKeys<K> &keys) const {
    ptx::storeShared16(address + place * 16, keys.rows, keys.shared, keys.begin, keys.end);
  }
  DEV SharedKeys<K> load(int32_t place) const {
    if (place < 0 || place >= K::kThreads)
      return SharedKeys<K>::none();
    int32_t words[4];
    ptx::loadShared16(address + place * 16, words);
    return {words[0], words[1], words[2], words[3]};
  }

  // The sequence belongs to the one before it. One whose neighbours share much more among themselves does not.
  DEV bool isLinked(int32_t place) const {
    const SharedKeys<K> before = load(place - 1), own = load(place), behind = load(place + 1);
    const int32_t ofBefore = load(place - 2).rows > 0 ? before.shared : 0;
    return before.rows > 0 && own.rows > 0 && own.shared >= cascade::kLeastTiles * K::kBlockN &&
           own.shared >= max(ofBefore, behind.rows > 0 ? behind.shared : 0) / 2;
  }

private:
  uint32_t address;
};

// The sequences of a run, the first of which is linked to none before: by their threads.
struct Run {
  int32_t first, end;

  // All threads of the block call.
  template <class K> DEV static Run of(const BlockWords &words, bool isLinked) {
    const int32_t place = threadIdx.x, warp = place / 32, lane = place % 32;
    const uint32_t links = __ballot_sync(kWholeWarp, isLinked);
    if (lane == 0)
      words.store(warp, links);
    __syncthreads();
    Run run = {place, place + 1};
    uint32_t before = ~links & ptx::lowestBits(lane + 1), behind = ~links & ~ptx::lowestBits(lane + 1);
#pragma unroll 1
    for (int32_t w = warp; before == 0 && w > 0;)
      before = ~static_cast<uint32_t>(words.load(--w)), run.first = w * 32;
    run.first = run.first / 32 * 32 + 31 - __clz(static_cast<int>(before));
    int32_t w = warp;
#pragma unroll 1
    while (behind == 0 && ++w < K::kWarps)
      behind = ~static_cast<uint32_t>(words.load(w));
    run.end = behind == 0 ? K::kThreads : w * 32 + __ffs(static_cast<int>(behind)) - 1;
    return run;
  }
};

// What this sequence and those behind it in its run have together; of the first one of a run, the group. All threads of the
// block call.
template <class K> DEV SharedKeys<K> joinRun(const SharedKeysOfBlock<K> &block, const Run &run, SharedKeys<K> own) {
  const int32_t place = threadIdx.x;
  if (run.first == place)
    own.shared = kNoTile; // with whatever is before the run
#pragma unroll 1
  for (int32_t distance = 1; distance < K::kThreads; distance *= 2) {
    __syncthreads();
    block.store(place, own);
    __syncthreads();
    if (place + distance < run.end)
      own.meet(block.load(place + distance));
  }
  return own;
}

// What is known of the sequences before.
struct GroupCounts {
  int32_t groups, rows;
};

DEV void writeRecord(int32_t *to, int32_t a, int32_t b, int32_t c, int32_t d) {
  to[0] = a, to[1] = b, to[2] = c, to[3] = d;
}

template <class K>
DEV void writeSequence(const ParamsOf<K> &p, int32_t number, const SharedKeys<K> &group, int32_t state) {
  writeRecord(p.sharing + cascade::firstSequenceWord(p.sequences) + number * cascade::kSequenceWords, group.begin,
              group.end, state, 0);
  if (group.end == group.begin)
    return;
  int32_t *const rows = p.sharing + cascade::firstRowWord(p.sequences) + state;
  const Sequence<K> sequence = Sequence<K>::read(p, number, 0);
  const int32_t firstRow = sequence.batch * p.seqlenQ + sequence.firstRow;
  for (int32_t query = 0; query < sequence.rows; ++query)
    rows[query] = firstRow + query;
}

template <class K>
DEV void writeGroup(const ParamsOf<K> &p, int32_t number, int32_t sequence, const SharedKeys<K> &group, int32_t state) {
  int32_t *const record = p.sharing + cascade::kHeadWords + number * cascade::kGroupWords;
  writeRecord(record, sequence, group.rows, group.begin, group.end);
  record[4] = state;
}

// Sequences from `first` on, one for each thread.
template <class K>
DEV void planGroups(const ParamsOf<K> &p, const BlockWords &words, const SharedKeysOfBlock<K> &block, int32_t first,
                    GroupCounts &counts) {
  const int32_t place = threadIdx.x, number = first + place;
  const bool exists = number < p.sequences;
  const SharedKeys<K> own = exists ? SharedKeys<K>::of(p, number) : SharedKeys<K>::none();
  __syncthreads();
  block.store(place, own);
  __syncthreads();
  const Run run = Run::of<K>(words, block.isLinked(place));
  const SharedKeys<K> rest = joinRun(block, run, own);
  __syncthreads();
  block.store(place, rest);
  __syncthreads();
  SharedKeys<K> group = block.load(run.first);
  group.close(run.end - run.first);
  const bool isFirst = run.first == place && group.end > group.begin;
  const BlockSum sum = sumOfBlock<K>(words, isFirst ? static_cast<int64_t>(group.rows) << 32 | 1 : 0);
  const int32_t groups = counts.groups + static_cast<int32_t>(sum.before),
                rows = counts.rows + static_cast<int32_t>(sum.before >> 32);
  // Of a sequence that is not the first of its group, that group is counted already.
  const int32_t state = rows - (isFirst ? 0 : rest.rows);
  if (exists)
    writeSequence(p, number, group, state);
  if (isFirst)
    writeGroup(p, groups, number, group, state);
  counts.groups += static_cast<int32_t>(sum.all);
  counts.rows += static_cast<int32_t>(sum.all >> 32);
}

template <class K> struct CascadePlan {
  using Params = ParamsOf<K>;
  static constexpr int kThreads = K::kThreads, kMinBlocks = 0;

  DEV static void run(const Params &p) {
    const uint32_t shared = ptx::sharedAddress(ptx::launchedMemory());
    const BlockWords words(shared);
    const SharedKeysOfBlock<K> block(shared + decode::kControlBytes);
    GroupCounts counts = {0, 0};
    for (int32_t first = 0; first < p.sequences; first += kThreads)
      planGroups(p, words, block, first, counts);
    if (threadIdx.x == 0)
      p.sharing[0] = counts.groups, p.sharing[1] = counts.rows;
  }

private:
  static_assert(K::Pattern::kBranchCount == 1 && K::kPacksHeads, "tiles of all rows and heads are the same ones");
};

} // namespace heddle
