// A consumer warpgroup: 64 rows of every work item of the block. Scores of the next tile and the output of this one are
// in flight while a warp looks for maxima and exponentiates; other consumers fill the tensor cores meanwhile.
#pragma once

#include "Forward/forward_rows.cuh"
#include "Forward/score_chain.cuh"
#include "Forward/score_mask.cuh"
#include "Forward/sm90_pair_steps.cuh"
#include "Forward/sm90_scales.cuh"
#include "Forward/sm90_softmax.cuh"
#include "Forward/sm90_split_kv.cuh"
#include "Forward/sm90_totals.cuh"
#include "Forward/tile_weights.cuh"

namespace heddle {

// Consumers issue their mma in turn when kTurnTaking; every tile is one turn of every consumer. The named
// barrier of a consumer is passed on by the one before it.
template <class K> class Turn {
public:
  DEV explicit Turn(int32_t consumer) : consumer(consumer) {
    if (K::kTurnTaking && consumer == K::kConsumers - 1)
      pass();
  }
  DEV void take() const {
    if (K::kTurnTaking)
      ptx::syncNamed(kFirstBarrier + consumer, 2 * kWarpgroupThreads);
  }
  DEV void pass() const {
    if (K::kTurnTaking)
      ptx::arriveNamed(kFirstBarrier + (consumer + 1 == K::kConsumers ? 0 : consumer + 1), 2 * kWarpgroupThreads);
  }

private:
  static constexpr int kFirstBarrier = 1; // 0 is __syncthreads
  int32_t consumer;
};

template <class K> class Consumer {
  using Params = ParamsOf<K>;
  using Pattern = typename K::Pattern;
  using Values = typename K::Values;

public:
  DEV Consumer(const Params &p, int32_t consumer)
      : p(p), consumer(consumer), turn(consumer), queries(kReads), keys(kReads), values(kReads), totals(p, consumer) {}

  DEV void run() {
#pragma unroll 1
    for (;;) {
      queries.waitFull();
      const int32_t flags = uniform(ptx::loadShared4(flagsOf(header())));
      if (hasBit(flags, flag::kIsEnd))
        break;
      if (K::kMayRedo && hasBit(flags, flag::kIsVerdict)) {
        release(K::kVerdict);
        nextItem();
      } else {
        consume(flags);
      }
    }
    // The consumers leave together: an exit inside the loop counts as divergence, and nothing in the loop would stay in
    // uniform registers.
    ptx::syncNamed(0, K::kConsumerThreads);
  }

  // Rows of lanes are counted from the first consumer, as LaneRows does.
  DEV WorkItem<K> ownItem() const {
    WorkItem<K> item = readItem<K>(header());
    if (K::kSplitsLong)
      item.firstRow -= (consumer - rowGroup()) * kConsumerRows * item.queryRate;
    return item;
  }

private:
  DEV uint32_t header() const { return K::itemHeader(queries.slot()); }

  DEV void nextItem() {
    queries.release();
    queries.next();
  }

  DEV void consume(int32_t flags) {
    sharesTiles = K::kSplitsLong && hasBit(flags, flag::kIsSplit);
    clearRows(rows);
    if (Pattern::kHasSink && beginsRows(flags))
      startFromSink(rows, Pattern::sink(contextOf(ownItem())));
    scales.find(p, *this);
    pairs.begin(p, *this);
    const bool hasCarry = p.carryLse && beginsRows(flags);
    if (!kHasTotals<K> && hasCarry)
      continueFromCarry(rows, p, LaneRows<K>(p, ownItem()), scales.ofValues(p, *this));
    if (Values::kSumTiles > 0)
      beginSums();
    if constexpr (kHasTotals<K>) {
      totals.begin();
      if (hasCarry)
        totals.continueFromCarry(rows, p, LaneRows<K>(p, ownItem()), scales.ofValues(p, *this));
    }
    isExact = !K::kIsAnchored || hasBit(flags, flag::kIsExact);
    lacksRowMax = 1;
    walkTiles(flags);
    TileWeights<K>::endSums(rows);
    LaneRows<K> lane(p, ownItem());
    const float descale = scales.ofValues(p, *this);
    const int32_t note = K::kMayRedo || K::kHasSplits ? ptx::loadShared4(noteOf(header())) : 0;
    if (K::kMayRedo && !isExact && TileWeights<K>::haveOverflowed(rows))
      markForRedo(note);
    nextItem();
    if (K::kHasSplits && hasBit(flags, flag::kIsSplit) &&
        !combineSplits(p, SplitRecord{static_cast<uint32_t>(uniform(note))}, rows))
      lane.end = 0; // another warp has the whole item
    storeRows(p, lane, rows, descale);
  }

  DEV float scaleLog2() const { return scales.ofScores(p); }

  // Sums of products begin with what the rows have so far.
  DEV void beginSums() {
#pragma unroll
    for (int slot = 0; slot < 4; ++slot)
      rows.out[0][K::kOutputTiles - 1][slot] = quadSum(rows.sum[0][slot / 2]);
  }

  // What comes before the keys of these rows is this consumer's to add.
  DEV bool beginsRows(int32_t flags) const {
    return !K::kHasSplits || (!hasBit(flags, flag::kContinues) && rowGroup() == consumer);
  }

  // The rows of the query tile that this consumer computes: its own, or those whose key tiles all consumers share.
  DEV int32_t rowGroup() const { return K::kSplitsLong && sharesTiles ? 0 : consumer; }

  DEV static void markForRedo(int32_t ordinal) {
    if (isLastLane())
      ptx::orShared(K::redoWord(ordinal / 32 % K::kRedoWords), 1u << ordinal % 32);
  }

  // Runs of tiles that this consumer needs, between those that only others need.
  DEV void walkTiles(int32_t flags) {
#pragma unroll 1
    for (;;) {
#pragma unroll 1
      while (isSkippedNext(flags))
        flags = skipTile();
      const bool isLast = !isNeededNext(flags);
      if (kHasTotals<K>)
        totals.endRun(rows, isLast);
      if (isLast)
        return;
      flags = walkRun();
    }
  }

  // Scores of a tile beside the output of the one before, or one after the other, as registers allow.
  DEV int32_t walkRun() {
    int32_t flags;
    if constexpr (!K::kOverlapsTiles) {
#pragma unroll 1
      do {
        flags = firstStep();
        lastOutput();
      } while (isNeededNext(flags));
    } else {
      flags = firstStep();
#pragma unroll 1
      while (isNeededNext(flags))
        flags = step();
      lastOutput();
    }
    return flags;
  }

  DEV bool isSkippedNext(int32_t flags) const { return hasBit(flags, flag::kNextExists) && !isNeededNext(flags); }
  DEV bool isNeededNext(int32_t flags) const { return hasBit(flags, flag::kNeeded + consumer); }

  DEV int32_t skipTile() {
    keys.waitFull();
    const KeyTileHeader<K> tile(keys.slot());
    turn.take();
    turn.pass();
    releaseKeys();
    values.waitFull();
    releaseValues();
    freeQueries(tile);
    return tile.following;
  }

  // Behind its last tile nobody asks for the rows of an item.
  DEV static void freeQueries(const KeyTileHeader<K> &tile) {
    if (K::kFreesQueries && !hasBit(tile.flags, flag::kNextExists))
      release(K::QueryTileRing::empty(0));
  }

  // The first tile of a run: nothing is in flight beside its scores.
  DEV int32_t firstStep() {
    Scores<K> scores;
    beginScores(scores);
    turn.pass();
    const KeyTileHeader<K> tile(keys.slot());
    auto scale = scales.ofTile(p, *this, tile);
    ptx::waitMma<0>();
    ptx::pin(scores[0]);
    readScores(scores, scale, tile);
    if (Pattern::kHasScore || isMasked(tile))
      changeTile(scores, tile);
    RowValues<K> factor;
    if (admit(rows, scores, scale, factor))
      scaleOutput(rows, factor);
    noteRowMax(tile);
    TileWeights<K> ofTile;
    ofTile.find(rows, scores, scale);
    ofTile.addTo(rows);
    takeWeights(ofTile, scores, scale);
    return tile.following;
  }

  // Scores of this tile and the output of the tile before it, then the softmax of this one.
  DEV int32_t step() {
    Scores<K> scores;
    RowValues<K> factor;
    beginScores(scores);
    if (kHasTotals<K>)
      totals.makeRoom(rows);
    beginOutput();
    turn.pass();
    const KeyTileHeader<K> tile(keys.slot());
    auto scale = scales.ofTile(p, *this, tile);
    ptx::waitMma<1>();
    ptx::pin(scores[0]);
    readScores(scores, scale, tile);
    if (Pattern::kHasScore || isMasked(tile))
      changeTile(scores, tile);
    int32_t hasMoved = 0;
    if (looksForMaximum(tile)) {
      hasMoved = admit(rows, scores, scale, factor);
      noteRowMax(tile);
    } else if (K::kIsAnchored && !K::kFitsWeights)
      hasMoved = moveAnchor(rows, factor);
    // Of bytes the wait comes first: ptxas moves it behind the first exponentials all the same, and words of four weights
    // then become operands where they are made.
    if (K::kIsScaled)
      endOutput();
    TileWeights<K> ofTile;
    ofTile.find(rows, scores, scale);
    ptx::pin(scores[0]);
    if (!K::kIsScaled)
      endOutput();
    takeWeights(ofTile, scores, scale);
    if constexpr (K::kFitsWeights)
      if (!hasMoved)
        hasMoved = refit(ofTile, scores, factor);
    ofTile.addTo(rows);
    if (hasMoved)
      scaleOutput(rows, factor);
    return tile.following;
  }

  DEV void beginScores(Scores<K> &scores) const {
    keys.waitFull();
    turn.take();
    ptx::fenceMma();
    startScores<K>(scores, queryAddress(), keyAddress());
    ptx::commitMma();
  }

  // The output of the tile before is complete.
  DEV void beginOutput() {
    values.waitFull();
    ptx::fenceMma();
    pairs.startOutput(rows, weights, valueAddress());
    ptx::commitMma();
  }

  DEV void endOutput() {
    ptx::waitMma<0>();
    ptx::pin(pairs.sums(rows)[0]);
    releaseValues();
    pairs.add(rows);
  }

  DEV void lastOutput() {
    if (kHasTotals<K>)
      totals.takeRoom();
    beginOutput();
    endOutput();
  }

  // The product of q and k has arrived. What pairs are to be multiplied by lies beside the keys, for their weights too.
  template <class Scale> DEV void readScores(Scores<K> &scores, Scale &scale, const KeyTileHeader<K> &tile) {
    pairs.scaleScores(scores, keys.slot());
    if (!K::kArePairs)
      releaseKeys();
    freeQueries(tile);
    scales.change(scores, scale, p, *this, tile);
  }

  template <class Scale> DEV void takeWeights(TileWeights<K> &ofTile, Scores<K> &scores, const Scale &scale) {
    pairs.scaleWeights(scores, keys.slot());
    ofTile.take(weights, rows, scores, scale);
    if (K::kArePairs)
      releaseKeys();
  }

  // Weights have become bytes already, while exponentials were waited for: seldom do they not fit. Where row maxima moved
  // before, they do, and `factor` is what the output waits for.
  DEV int32_t refit(TileWeights<K> &ofTile, Scores<K> &scores, RowValues<K> &factor) {
    if (!ofTile.mayNotFit())
      return 0;
    ofTile.fit(rows, scores, weights, factor);
    return 1;
  }

  DEV void releaseKeys() {
    keys.release();
    keys.next();
  }

  DEV void releaseValues() {
    values.release();
    values.next();
  }

  DEV bool isMasked(const KeyTileHeader<K> &tile) const { return hasBit(tile.flags, flag::kMasked + consumer); }

  DEV Context<K> contextOf(const WorkItem<K> &item) const { return makeContext(p, item.batch, item.head); }

  // The chain of scores, then the masks.
  DEV void changeTile(Scores<K> &scores, const KeyTileHeader<K> &tile) const {
    const WorkItem<K> item = ownItem();
    const Context<K> context = contextOf(item);
    const MaskScope<K> mask{context, item.variant, p.qOrigin + item.firstRow, item.queryRate};
    const KeyTile keyTile{tile.firstKey, tile.flags >> flag::kBranch, true};
    if constexpr (Pattern::kHasScore)
      applyScores(scores, mask, keyTile, 0, scaleLog2());
    if (!Pattern::kHasScore || isMasked(tile))
      maskScores(scores, mask, keyTile, 0);
  }

  DEV bool looksForMaximum(const KeyTileHeader<K> &tile) const {
    if constexpr (K::kIsAnchored)
      return (tile.flags & 1 << (flag::kMasked + consumer)) | lacksRowMax;
    return true;
  }
  // Rows that keep a whole tile have a maximum; but for scores of -infinity, whose rows will be marked.
  DEV void noteRowMax(const KeyTileHeader<K> &tile) {
    if (!isExact && !hasBit(tile.following, flag::kMasked + consumer))
      lacksRowMax = 0;
  }

  DEV uint32_t queryAddress() const {
    return queryTileOf<K>(queries.slot()) + rowGroup() * kConsumerRows * kColumnRowBytes;
  }
  DEV uint32_t keyAddress() const { return K::kKeyTile + keys.slot() * K::kSmemStageBytesK; }
  DEV uint32_t valueAddress() const { return K::kValueTile + values.slot() * K::kSmemStageBytesV; }

  const Params &p;
  int32_t consumer;
  Turn<K> turn;
  Pipeline<K::kHeaderStages, typename K::QueryRing> queries;
  Pipeline<K::kStages, typename K::KeyRing> keys;
  Pipeline<K::kValueStages, typename K::ValueRing> values;
  RowState<K> rows;
  Probabilities<K> weights;
  bool isExact;
  int32_t lacksRowMax; // not 0: some row of this item may, or all maxima are looked for
  bool sharesTiles;
  ItemScales<K, K::kIsScaled, (K::kScaleRows > 0)> scales;
  PairSteps<K, K::kArePairs> pairs;
  Totals<K> totals;
};

} // namespace heddle
