// Every rule that applies sets its fields, a later one over an earlier one. Figures were measured on an NVIDIA H200
// (132 SMs); "of the product" is the share of its rate in bf16 matrix products alone.
#include "codegen/Config/ChainedLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/TensorMapLaunch.h"
#include "codegen/Skeletons/Forward/Sm90Constraints.h"
#include "codegen/Skeletons/Forward/Sm90Pairs.h"
#include "codegen/Skeletons/Forward/Sm90TurnedValues.h"
#include "runtime/Core/KernelRecord.h"

#include <algorithm>

namespace heddle {
namespace {

using namespace sm90;
using C = Sm90Config;

/// What rules ask about a request.
struct Asked {
  explicit Asked(const KernelRequest &request) : request(request), balance(request.balance) {}

  const KernelRequest &request;
  const TileBalance &balance;
  int64_t dim = std::max(request.headDim, request.valueDim);
  // of which neither 192 rows nor 80 keys are a part
  bool isInBlocks = request.keepsWholeTiles(kConsumerRows, kConsumerRows);
  bool isOfPart = !request.wholes.empty();
  bool hasShortRows = balance.hasEqualTiles && balance.hasFewTiles && dim > 64;
  /// Without chains of scores, in one piece.
  bool mayAnchor = !request.hasScores && !balance.hasLongRows;
  bool keepsAnchors = mayAnchor && !balance.hasFewTiles;
  /// The calls that the default is for have fewer queries than so many, which some defaults are made for.
  bool hasFewerQueries(int64_t than) const { return ProblemBucket::rowsOfDefault(balance.queries, request) < than; }
  bool mayBeCut = hasFewerQueries(ProblemBucket::kManyRows) && sm90CanSplit(request); // fewer query tiles than SMs
  bool sharesParts = balance.hasLongRows && sm90CanSplit(request) && !mayBeCut;

  /// Rows and keys of one head group that are neither strided nor in blocks nor in lists.
  bool isPlain() const {
    return request.variants.size() == 1 && MapRates::of(request.variants).mapsPerRate() == 1 && !isInBlocks &&
           !request.hasLists;
  }
  /// The planning warp looks for the cells of lists.
  bool isListed() const { return request.searchesLists; }
  /// Lists of blocks of 64, of which each query tile of 64 rows has its own.
  bool listsSmallBlocks() const { return request.hasLists && fitsBand(kConsumerRows) && !fitsBand(2 * kConsumerRows); }
  /// Long items fall into parts.
  bool wantsOwnKeys() const { return balance.hasOwnKeys && (balance.hasFewTiles || balance.hasLongRows); }
  /// Larger heads wherever some tiles are whole and consumers take turns, which wait for each other's maxima. Small ones have
  /// tiles of their own for few blocks.
  bool anchorsRows() const {
    const bool gains = dim > 64 ? takesTurns() && balance.hasWholeTiles : !balance.hasFewTiles;
    return request.element().largestExponent() >= kFloatExponent && mayAnchor && gains;
  }
  bool takesTurns() const { return !hasShortRows || hasWideTiles(); }
  /// Large heads that share no keys with their neighbours.
  bool hasWideTiles() const { return dim > 64 && wantsOwnKeys() && fitsBand(kMaxKeys); }
  /// Of bytes, a few tiles, too, unless masks need the registers: those of several lattices, of a band across blocks.
  bool anchorsBytes() const {
    const bool areBlocks = request.keepsWholeTiles(kMaxKeys, kMaxKeys);
    const bool hasPlainMasks = request.variants.size() == 1 && (areBlocks || !fitsBand(kMaxKeys));
    return request.element().isScaled() && request.elements.scaleRows == 0 && mayAnchor &&
           (keepsAnchors || areBlocks || hasPlainMasks);
  }
  /// Whole blocks that rows share with their neighbours. A tile of key-major values is 128 keys.
  bool sharesBlocks() const {
    return isInBlocks && mayAnchor && !balance.hasOwnKeys && !isListed() && !request.kind.hasKeyMajorValues;
  }
  /// Query tiles want few keys, beside each other, which the L2 holds for all heads.
  bool keepsNeighbours() const {
    return request.hasDocuments || (hasShortRows && isPlain()) || (dim <= 64 && sharesBlocks());
  }
  /// Of bytes: keys that so many rows keep that it pays to turn their values over once, for all blocks.
  bool turnsOnce() const {
    return sm90CanTurn(request) && isPlain() && mayAnchor && balance.hasManyTiles &&
           (dim > 64 || balance.hasEqualTiles) && !isOfPart && !hasFewerQueries(ProblemBucket::kTurnedRows);
  }
  bool fitsBand(int64_t keys) const { return request.keepsTilesInBand(kConsumerRows, keys); }
};

struct Setting {
  int64_t C::*field = nullptr;
  int64_t value = 0;
};

struct Settings {
  Setting list[7]; ///< the last ones may be of no field
};

struct Rule {
  int64_t mostDim;
  bool (*applies)(const Asked &);
  Settings sets;
};

struct Tiles {
  int64_t blockM, blockN, stages, queryStages, turnTaking, producerRegisters, minBlocks = 1;

  constexpr operator Settings() const {
    return {{{&C::blockM, blockM},
             {&C::blockN, blockN},
             {&C::stages, stages},
             {&C::queryStages, queryStages},
             {&C::turnTaking, turnTaking},
             {&C::producerRegisters, producerRegisters},
             {&C::minBlocks, minBlocks}}};
  }
};

constexpr int64_t kAny = INT64_MAX;
// Of bytes, after which the output goes to totals. Sums of the weights of full rows of 8k are cut by 2.2%, and out, divided by
// them, is as much too large. After 1,152 keys it is 0.7%, for 3.4% of the time, which fast weights have left; but where totals
// lie in the workspace it would be 16%, of every fourth key within 4,096.
constexpr int64_t kFlushKeys = 2304, kFlushKeysOfFast = 1152;
int64_t flushKeys(const KernelRequest &request, const Sm90Config &config) {
  return request.elements.precision == Precision::fast && !config.totals ? kFlushKeysOfFast : kFlushKeys;
}

bool always(const Asked &) { return true; }
bool isPlain(const Asked &asked) { return asked.isPlain(); }
bool isScaled(const Asked &asked) { return asked.request.element().isScaled(); }
bool isOfFloats(const Asked &asked) { return asked.request.elements.q == DType::fp32; }
bool makesPairs(const Asked &asked) { return sm90MakesPairs(asked.request); }
bool hasShortRows(const Asked &asked) { return asked.hasShortRows; }
bool isOfFew(const Asked &asked) { return asked.balance.queries > 0 && asked.balance.queries <= kConsumerRows; }

constexpr Rule kRules[] = {
    // The range functions of head groups and strides take more registers of the producing warpgroup; beside four
    // consumers they do with 32.
    {256, always, Tiles{128, 32, 3, 1, 1, 56}},
    {192, always, Tiles{128, 80, 2, 1, 1, 56}},
    {128, always, Tiles{192, 64, 3, 2, 1, 56}},
    {64, always, Tiles{256, 64, 4, 2, 1, 32}},
    {256, isPlain, Tiles{128, 48, 2, 1, 1, 32}},
    {192, isPlain, Tiles{128, 96, 2, 1, 1, 32}},
    {128, isPlain, Tiles{192, 80, 2, 2, 1, 32}},
    {64, isPlain, Tiles{256, 64, 4, 2, 1, 32}},
    {kAny, always, {{{&C::rasterReversed, 1}, {&C::grid, kGridDynamic}}}},
    // Not of parts: messages of a group hold some processors, whose blocks would be late with all of their tiles.
    {kAny,
     [](const Asked &asked) { return asked.balance.hasEqualTiles && !asked.isOfPart; },
     {{{&C::grid, kGridStride}}}},
    // Of many tiles few are masked. Small heads are bound by the softmax: 77.7% of the product instead of 72% on full
    // d=64, 67% instead of 63% on dilated segments. Larger ones are bound by power, which instructions take: 779 TFLOP/s
    // instead of 770 on full 8k, 727 instead of 714 on causal 128k, 604 instead of 582 on longnet 32k.
    {128, [](const Asked &asked) { return asked.anchorsRows(); }, {{{&C::softmax, kSoftmaxAnchored}}}},
    // Full rows without a search for maxima: wide tiles, 78.9% of the product, 76.5% with 256x64. Not in blocks, of
    // which 192 rows are no multiple: 532 TFLOP/s with 256x64 on every fourth block, 492 with 192x128.
    {64, [](const Asked &asked) { return asked.anchorsRows() && asked.balance.hasEqualTiles && !asked.isInBlocks; },
     Tiles{192, 128, 2, 2, 1, 32}},
    // Query tiles of few key tiles, all alike: consumers that take no turns drift apart, so that one stores its rows
    // while another multiplies, 77% of the product instead of 69% on a window of 1024 keys.
    {128, hasShortRows, Tiles{192, 64, 3, 2, 0, 56}},
    {128, [](const Asked &asked) { return asked.hasShortRows && !asked.isOfPart; }, {{{&C::rasterReversed, 0}}}},
    // Blocks that rows do not share with their neighbours: of no more rows than want the same keys. With heads of 128
    // wide tiles are the best of five: 512 TFLOP/s at 8k, 387 of 192x64. Small heads have two blocks per SM, so that
    // one begins while another ends, but for lists of blocks of 128: 457 TFLOP/s on random blocks at 32k, 378 of two blocks.
    {128, [](const Asked &asked) { return asked.hasWideTiles(); }, Tiles{128, 128, 2, 1, 1, 56}},
    // Words of listed blocks and those of a band beside anchors: 20 B spilled with 56.
    {128,
     [](const Asked &asked) {
       return asked.hasWideTiles() && asked.anchorsRows() && asked.request.hasLists && !asked.isInBlocks;
     },
     {{{&C::producerRegisters, 64}}}},
    {64, [](const Asked &asked) { return asked.wantsOwnKeys() && asked.fitsBand(32); }, Tiles{128, 32, 4, 1, 1, 56, 2}},
    {64, [](const Asked &asked) { return asked.wantsOwnKeys() && asked.request.hasLists && asked.fitsBand(128); },
     Tiles{128, 128, 3, 1, 1, 56}},
    // Two blocks of an SM, each with a list of its own: 417 TFLOP/s on lists of 64 blocks, 342 of 192x64; with heads of 64
    // 250, 214 of 128x32.
    {128, [](const Asked &asked) { return asked.listsSmallBlocks(); }, Tiles{64, 64, 2, 1, 0, 56, 2}},
    {64, [](const Asked &asked) { return asked.listsSmallBlocks(); }, Tiles{64, 64, 3, 1, 0, 56, 2}},
    // At most 64 queries: one warpgroup, and wide key tiles, of which there are few to wait for. Parts of two blocks on
    // an SM cost more to join than they gain: 64 queries, 8k and 32k keys, 12 heads take 28 and 53 us, 25 and 48 us
    // with one.
    {256, isOfFew, Tiles{64, 64, 2, 1, 0, 56}},
    {192, isOfFew, Tiles{64, 64, 3, 1, 0, 56}},
    {128, isOfFew, Tiles{64, 128, 3, 1, 0, 56}},
    {128,
     [](const Asked &asked) { return isOfFew(asked) && asked.fitsBand(64) && !asked.fitsBand(128); },
     {{{&C::blockN, 64}}}}, // blocks of 64 keys are no multiples of wider tiles
    // e4m3. Beside 192 rows, 96 keys are what fits the registers, with totals of the output in shared memory: full rows run at
    // 951 TFLOP/s (H100), at 799 with 128x128.
    {256, isScaled, Tiles{64, 64, 2, 1, 0, 40}},
    {192, isScaled, Tiles{128, 64, 2, 1, 1, 40}},
    {128, isScaled, Tiles{192, 96, 3, 1, 1, 32}},
    {64, isScaled, Tiles{192, 128, 3, 2, 1, 32}},
    {128, [](const Asked &asked) { return isScaled(asked) && asked.hasShortRows; }, {{{&C::grid, kGridDynamic}}}},
    // Of most of them no output goes to totals, which leave room in shared memory for two query tiles: 359 us, 365 without.
    {128,
     [](const Asked &asked) {
       return isScaled(asked) && asked.hasShortRows && !asked.isInBlocks && !asked.request.hasLists;
     },
     {{{&C::totals, 1}, {&C::queryStages, 2}}}},
    // A window of 1,024 keys takes 352 us, 359 with turns; every fourth key within 4,096 555 us with four stages, 564 with
    // three and turns.
    {128, [](const Asked &asked) { return isScaled(asked) && asked.hasShortRows; }, {{{&C::turnTaking, 0}}}},
    {128,
     [](const Asked &asked) { return isScaled(asked) && asked.hasShortRows && !asked.isPlain(); },
     {{{&C::stages, 4}}}},
    // Heads beside each other end together: documents 933 us, 965 with those of 16 MiB, dilated segments of 2,048 keys 397
    // and 405, a window of 1,024 keys 346 and 348. Not at a stride, every fourth key within 4,096: 571 and 564.
    {128,
     [](const Asked &asked) { return isScaled(asked) && asked.keepsNeighbours(); },
     {{{&C::rasterMib, kAllHeadsMib}}}},
    // A warp that goes through lists spills with 32 registers.
    {128, [](const Asked &asked) { return isScaled(asked) && asked.request.hasLists; }, Tiles{192, 64, 3, 1, 1, 56}},
    {64, [](const Asked &asked) { return isScaled(asked) && asked.request.hasLists; }, Tiles{192, 128, 3, 2, 1, 56}},
    // Blocks of 128: 944 TFLOP/s on random ones with 128x128.
    {128, [](const Asked &asked) { return isScaled(asked) && asked.isInBlocks; }, Tiles{192, 64, 3, 1, 1, 56}},
    {128, [](const Asked &asked) { return isScaled(asked) && asked.fitsBand(128); }, Tiles{128, 128, 3, 2, 1, 56}},
    {128, [](const Asked &asked) { return isScaled(asked) && asked.isListed() && asked.sharesParts && asked.dim > 64; },
     Tiles{128, 64, 3, 1, 0, 56}},
    // Of bytes 478 TFLOP/s with fast weights, 362 of 192x64; with heads of 64 264, 200 of 192x64.
    {128, [](const Asked &asked) { return isScaled(asked) && asked.listsSmallBlocks(); },
     Tiles{64, 64, 2, 1, 0, 56, 2}},
    {64, [](const Asked &asked) { return isScaled(asked) && asked.listsSmallBlocks(); }, Tiles{64, 64, 3, 1, 0, 64, 2}},
    // Rows that share blocks: 579 TFLOP/s on dilated segments of 2,048 keys, 415 with 128x128.
    {64, [](const Asked &asked) { return isScaled(asked) && asked.sharesBlocks(); }, Tiles{256, 64, 4, 2, 1, 32}},
    {128, [](const Asked &asked) { return isScaled(asked) && isOfFew(asked); }, Tiles{64, 64, 3, 1, 0, 56}},
    {kAny, isScaled, {{{&C::rescaleThreshold, 4}, {&C::softmax, kSoftmaxOnline}}}},
    // Weights of bits end an octave earlier below, so they begin two above.
    {kAny,
     [](const Asked &asked) { return asked.request.elements.precision == Precision::fast; },
     {{{&C::rescaleThreshold, 2}}}},
    // Anchors take two registers more, which factors of blocks do not leave. d = 64: 662 TFLOP/s, 605 without; a window
    // of 1,024 keys 691, 669 without.
    {128, [](const Asked &asked) { return asked.anchorsBytes(); }, {{{&C::softmax, kSoftmaxAnchored}}}},
    {128,
     [](const Asked &asked) { return isScaled(asked) && asked.balance.hasEqualTiles && !asked.balance.hasFewTiles; },
     {{{&C::splitLast, 1}}}}, // the last of 5.2 rounds: 838 TFLOP/s without
    // Causal rows up to 32k 4,160 us, 4,320 in tiles; up to 8k 517 and 522; up to 4k 0.8% longer, up to 2k 10%. All of
    // 8k 988 and 1,018; of 2k 2% longer. d = 64: causal 8k alike, full 8k 1,496 and 1,515.
    {128, [](const Asked &asked) { return asked.turnsOnce(); }, {{{&C::turnValues, 1}}}},
    // Floats: 64 keys of 128 are 32 KB, of which shared memory has room for two beside 128 rows. Causal 8k runs at 252
    // TFLOP/s with heads of 64, at 250 with 64 keys a tile, and at 237 with 128 x 128; with heads of 128 at 244, at 199
    // with 32 keys a tile.
    {128, isOfFloats, Tiles{128, 64, 2, 1, 1, 40}},
    {64, isOfFloats, Tiles{192, 64, 4, 1, 1, 40}},
    {64, [](const Asked &asked) { return isOfFloats(asked) && asked.isPlain(); }, Tiles{192, 80, 3, 1, 1, 56}},
    {128, [](const Asked &asked) { return isOfFloats(asked) && asked.hasShortRows; }, {{{&C::turnTaking, 0}}}},
    {128, [](const Asked &asked) { return isOfFloats(asked) && isOfFew(asked); }, Tiles{64, 64, 2, 1, 0, 40}},
    {kAny, isOfFloats, {{{&C::softmax, kSoftmaxOnline}}}},
    // Pairs: beside the output there is the product of a tile, and weights are pairs, too. Causal 8k runs at 192 TFLOP/s
    // with heads of 64, at 168 with 64 keys a tile; with heads of 128, whose consumers do without overlap, at 211, at 188
    // where they take turns.
    {128, makesPairs, Tiles{128, 64, 2, 1, 0, 40}},
    {64, makesPairs, Tiles{128, 128, 2, 1, 1, 40}},
    {64, [](const Asked &asked) { return makesPairs(asked) && asked.request.hasScores; }, {{{&C::blockN, 96}}}},
    {64,
     [](const Asked &asked) { return makesPairs(asked) && asked.isListed(); },
     {{{&C::blockN, 64}, {&C::stages, 4}}}},
    {128, [](const Asked &asked) { return makesPairs(asked) && asked.isListed(); }, {{{&C::producerRegisters, 56}}}},
    {kAny,
     [](const Asked &asked) { return asked.mayBeCut; },
     {{{&C::grid, kGridStride}, {&C::splitLast, 1}, {&C::softmax, kSoftmaxOnline}}}},
    // Few keys in a part, and time for what is exact: the largest weight of bytes stays a power of two.
    {kAny, [](const Asked &asked) { return isScaled(asked) && asked.mayBeCut; }, {{{&C::rescaleThreshold, 0}}}},
    // What is long must come first, or it is all that is left at the end.
    {kAny, [](const Asked &asked) { return asked.balance.hasLongRows; }, {{{&C::rasterReversed, 0}}}},
    {kAny,
     [](const Asked &asked) { return asked.balance.hasLongRows && asked.balance.longRowsAreLast; },
     {{{&C::rasterReversed, 1}}}},
    {kAny,
     [](const Asked &asked) { return asked.sharesParts; },
     {{{&C::splitTiles, kDefaultSplitTiles}, {&C::turnTaking, 0}, {&C::rasterMib, kAllHeadsMib}}}},
    // One consumer does alone what two or three share elsewhere: global rows of 8k 88 us, 113 in parts of 96 tiles.
    {128,
     [](const Asked &asked) { return asked.sharesParts && asked.listsSmallBlocks() && !isOfFloats(asked); },
     {{{&C::splitTiles, kDefaultSplitTiles / 2}}}},
};

} // namespace

Sm90Config sm90Default(const KernelRequest &request) {
  const Asked asked(request);
  Sm90Config config;
  for (const Rule &rule : kRules)
    if (asked.dim <= rule.mostDim && rule.applies(asked))
      for (const Setting &setting : rule.sets.list)
        if (setting.field)
          config.*setting.field = setting.value;
  if (asked.balance.queries > 0) // no more rows than there are queries
    config.blockM =
        std::min(config.blockM, (asked.balance.queries + kConsumerRows - 1) / kConsumerRows * kConsumerRows);
  if (request.element().isScaled())
    config.flushTiles = flushKeys(request, config) / config.blockN;
  config.chainedMib = defaultChainedMib(request);
  if (!sm90CanChain(request, config))
    config.chainedMib = 0;
  sm90TakeBack(config);
  return config;
}

void sm90TakeBack(Sm90Config &config) {
  if (config.grid == kGridTile)
    config.splitTiles = config.totals = 0;
  if (config.grid != kGridStride || config.splitTiles)
    config.splitLast = 0;
  if (config.blockM == kConsumerRows)
    config.turnTaking = 0;
  if (config.flushTiles * config.blockN > kMostFlushKeys)
    config.flushTiles = kFlushKeys / config.blockN;
}

} // namespace heddle
