// The producing warp: walks the work items and their key tiles and copies them into the rings, ahead of use.
// Lane 0 waits and issues; all lanes take part in the walk.
#pragma once

namespace heddle {

class Producer {
public:
  DEV explicit Producer(const KernelParams &p) : p(p), queries(1), keys(1), values(1) {}

  // All items, then those that the consumers marked in the first pass.
  DEV void run() {
#pragma unroll 1
    for (int pass = 0; pass <= kMayRedo; ++pass) {
      produceAll(pass > 0);
      if (pass < kMayRedo) {
        sendMark(words::kIsVerdict);
        ptx::waitParity(kVerdict, 0);
      }
    }
    sendMark(words::kIsEnd);
  }

private:
  DEV static bool isIssuer() { return ptx::rereadThreadIndex() % 32 == 0; }

  // The items of this block; again: those that the consumers marked.
  DEV void produceAll(bool again) {
    ItemSequence sequence(p);
    int32_t ordinal = 0;
#pragma unroll 1
    for (int32_t number = sequence.next(); number >= 0; number = sequence.next()) {
      WorkItem item;
      if ((!kMayRedo || !again || isMarked(ordinal)) && decodeWorkItem(p, number, item))
        produce(item, ordinal, again);
      ordinal += kMayRedo;
    }
  }

  DEV bool isMarked(int32_t ordinal) const {
    return ptx::loadShared4(kRedoBits + ordinal / 32 % kRedoWords * 4) >> ordinal % 32 & 1;
  }

  // Order of the copies: K(0), Q, then K(n + 1) before V(n), as the consumers use them. Each tile is sent when the next
  // one is known, because its words speak of that.
  DEV void produce(const WorkItem &item, int32_t ordinal, bool isExact) {
    noteItem(item, ordinal, isExact);
    GroupTileWalk walk(p);
    GroupTile last{-1, 0, 0}, tile{-1, 0, 0};
#pragma unroll 1
    for (;;) {
      GroupTile following = walk.next();
      if (tile.exists()) {
        sendKeys(tile, following, walk.firstKey(tile));
        if (last.exists())
          sendValues(last);
        else
          sendQuery();
      } else {
        noteFirst(following);
      }
      last = tile;
      tile = following;
      if (!following.exists())
        break;
    }
    if (last.exists())
      sendValues(last);
    else
      sendQuery();
  }

  // What is said once for the whole item is kept in shared memory: registers are scarce in the loop.
  DEV void noteItem(const WorkItem &item, int32_t ordinal, bool isExact) const {
    if (isIssuer()) {
      ptx::storeShared16(kProducerWords, item.batch, item.head, item.firstRow, item.queryRate);
      ptx::storeShared16(kProducerWords + 16, item.variant, isExact << words::kIsExact, ordinal, item.kvHead);
    }
    __syncwarp();
  }

  DEV void noteFirst(const GroupTile &tile) const {
    if (isIssuer())
      ptx::storeShared4(kProducerWords + 20, ptx::loadShared4(kProducerWords + 20) | upcoming(tile));
  }

  DEV static int32_t upcoming(const GroupTile &tile) {
    constexpr int32_t kAllNeeded = 0xf << words::kNeeded;
    return (tile.flags & kAllNeeded) | tile.exists() << words::kNextExists;
  }

  DEV void sendKeys(const GroupTile &tile, const GroupTile &following, int32_t firstKey) {
    if (isIssuer()) {
      constexpr int32_t kOwn = ~(0xf << words::kNeeded);
      const uint32_t full = kKeyFull + 8 * keys.slot();
      ptx::waitParity(kKeyEmpty + 8 * keys.slot(), keys.parity());
      ptx::storeShared8(kTileWords + kTileWordsBytes * keys.slot(), firstKey, (tile.flags & kOwn) | upcoming(following));
      ptx::arriveExpecting(full, kKeyTileBytes);
      copyColumns<KernelTraits::kHeadDim>(kKeyTile + keys.slot() * KernelTraits::kSmemStageBytesK, full,
                                          &p.maps[kKeyMaps + tile.map()], tile);
    }
    keys.next();
  }

  DEV void sendValues(const GroupTile &tile) {
    if (isIssuer()) {
      const uint32_t full = kValueFull + 8 * values.slot();
      ptx::waitParity(kValueEmpty + 8 * values.slot(), values.parity());
      ptx::arriveExpecting(full, kValueTileBytes);
      copyColumns<KernelTraits::kValueDim>(kValueTile + values.slot() * KernelTraits::kSmemStageBytesV, full,
                                           &p.maps[kValueMaps + tile.map()], tile);
    }
    values.next();
  }

  template <int Dim>
  DEV static void copyColumns(uint32_t to, uint32_t full, const TensorMap *map, const GroupTile &tile) {
    const int32_t batch = ptx::loadShared4(kProducerWords), kvHead = ptx::loadShared4(kProducerWords + 28);
#pragma unroll
    for (int column = 0; column < kColumns<Dim>; ++column)
      ptx::copyBox(to + column * KernelTraits::kBlockN * kColumnRowBytes, map, full, column * kColumnElements,
                   tile.firstRowInClass(), tile.residue(), kvHead, batch);
  }

  DEV void sendQuery() {
    if (isIssuer()) {
      const uint32_t full = kQueryFull + 8 * queries.slot();
      const uint32_t to = kItemWords + kItemWordsBytes * queries.slot();
      int32_t place[4], rest[4];
      ptx::waitParity(kQueryEmpty + 8 * queries.slot(), queries.parity());
      ptx::loadShared16(kProducerWords, place);
      ptx::loadShared16(kProducerWords + 16, rest);
      ptx::storeShared16(to, place[0], place[1], place[2], place[3]);
      ptx::storeShared16(to + 16, rest[0], rest[1], rest[2], rest[3]);
      if (hasBit(rest[1], words::kNextExists)) {
        ptx::arriveExpecting(full, kQueryTileBytes);
        copyQuery(full, place);
      } else {
        ptx::arrive(full);
      }
    }
    queries.next();
  }

  DEV void copyQuery(uint32_t full, const int32_t (&place)[4]) const {
    const int32_t batch = place[0], head = place[1], rate = place[3];
    const int32_t row = place[2] / rate, residue = place[2] - row * rate;
    const int32_t map = mapOfClass(queryRateSlot(rate), rate, residue, p.seqlenQ);
    const uint32_t to = kQueryTile + queries.slot() * KernelTraits::kSmemStageBytesQ;
#pragma unroll
    for (int column = 0; column < kColumns<KernelTraits::kHeadDim>; ++column)
      ptx::copyBox(to + column * KernelTraits::kBlockM * kColumnRowBytes, &p.maps[kQueryMaps + map], full,
                   column * kColumnElements, row, residue, head, batch);
  }

  DEV void sendMark(int flag) {
    if (isIssuer()) {
      ptx::waitParity(kQueryEmpty + 8 * queries.slot(), queries.parity());
      ptx::storeShared16(kItemWords + kItemWordsBytes * queries.slot() + 16, 0, 1 << flag, 0, 0);
      ptx::arrive(kQueryFull + 8 * queries.slot());
    }
    queries.next();
  }

  const KernelParams &p;
  RingCursor<kQueryStages> queries;
  RingCursor<kStages> keys, values;
};

} // namespace heddle
