// The loading thread: follows the plan and copies query tiles and key tiles into the rings, ahead of use, with the
// headers that the consumers need. Order of the copies: K(0), Q, then K(n + 1) before V(n), as the consumers use them.
#pragma once

namespace heddle {

class Loader {
public:
  DEV explicit Loader(const KernelParams &p) : p(p), plan(0), queries(1), keys(1), values(1) {}

  DEV void run() {
    bool isFirst = true; // the next tile is the first of its item
    PlannedTile last{};  // whose values are still to be sent
#pragma unroll 1
    for (;;) {
      ptx::waitParity(kPlanFull + 8 * plan.slot(), plan.parity());
      const uint32_t from = kPlan + kItemHeaderBytes * plan.slot();
      const int32_t flags = ptx::loadShared4(from + kPlanFlagsOffset);
      const bool isItem = hasBit(flags, flag::kIsItem), hasNext = hasBit(flags, flag::kNextExists);
      const PlannedTile tile(from);
      if (isItem)
        copyHeader(kLoaderItem, from);
      releasePlan();
      if (!isItem)
        sendKeys(tile, flags);
      if (isItem ? !hasNext : isFirst)
        sendQuery(!isItem);
      if (hasBit(flags, flag::kIsEnd))
        return;
      if (!isItem)
        sendValuesBehind(last, tile, isFirst, hasNext);
      isFirst = isItem;
    }
  }

private:
  struct PlannedTile {
    int32_t number, place, firstKey;

    PlannedTile() = default;
    DEV explicit PlannedTile(uint32_t from) {
      int32_t entry[4];
      ptx::loadShared16(from, entry);
      number = entry[0];
      place = entry[1];
      firstKey = entry[2];
    }
  };

  DEV void releasePlan() {
    ptx::arrive(kPlanEmpty + 8 * plan.slot());
    plan.next();
  }

  // Headers stay in shared memory: registers are scarce.
  DEV static void copyHeader(uint32_t to, uint32_t from) {
    int32_t place[4], rest[4];
    ptx::loadShared16(from, place);
    ptx::loadShared16(from + 16, rest);
    ptx::storeShared16(to, place[0], place[1], place[2], place[3]);
    ptx::storeShared16(to + 16, rest[0], rest[1], rest[2], rest[3]);
  }

  DEV void sendKeys(const PlannedTile &tile, int32_t flags) {
    const uint32_t full = kKeyFull + 8 * keys.slot();
    ptx::waitParity(kKeyEmpty + 8 * keys.slot(), keys.parity());
    ptx::storeShared8(kTileHeaders + kTileHeaderBytes * keys.slot(), tile.firstKey, flags);
    ptx::arriveExpecting(full, kKeyTileBytes);
    copyColumns<KernelTraits::kHeadDim>(kKeyTile + keys.slot() * KernelTraits::kSmemStageBytesK, full, kKeyMaps, tile);
    keys.next();
  }

  // Behind the keys of a tile: the values of the tile before, then its own if no keys follow. `last` becomes the tile.
  DEV void sendValuesBehind(PlannedTile &last, const PlannedTile &tile, bool isFirst, bool hasNext) {
    if (isFirst)
      last = tile;
#pragma unroll 1
    for (int32_t rest = !isFirst + !hasNext; rest > 0; --rest) {
      sendValues(last);
      last = tile;
    }
  }

  DEV void sendValues(const PlannedTile &tile) {
    const uint32_t full = kValueFull + 8 * values.slot();
    ptx::waitParity(kValueEmpty + 8 * values.slot(), values.parity());
    ptx::arriveExpecting(full, kValueTileBytes);
    copyColumns<KernelTraits::kValueDim>(kValueTile + values.slot() * KernelTraits::kSmemStageBytesV, full, kValueMaps,
                                         tile);
    values.next();
  }

  template <int Dim> DEV void copyColumns(uint32_t to, uint32_t full, int firstMap, const PlannedTile &tile) const {
    const int32_t batch = ptx::loadShared4(kLoaderItem), kvHead = ptx::loadShared4(kLoaderItem + 28);
    const TensorMap *map = &p.maps[firstMap + GroupTile::mapOf(tile.place)];
    const int32_t first = tile.number * KernelTraits::kBlockN;
#pragma unroll
    for (int column = 0; column < kColumns<Dim>; ++column)
      ptx::copyBox(to + column * KernelTraits::kBlockN * kColumnRowBytes, map, full, column * kColumnElements, first,
                   GroupTile::residueOf(tile.place), kvHead, batch);
  }

  DEV void sendQuery(bool hasTiles) {
    const uint32_t full = kQueryFull + 8 * queries.slot();
    ptx::waitParity(kQueryEmpty + 8 * queries.slot(), queries.parity());
    copyHeader(kItemHeaders + kItemHeaderBytes * queries.slot(), kLoaderItem);
    if (hasTiles) {
      ptx::arriveExpecting(full, kQueryTileBytes);
      copyQuery(full);
    } else {
      ptx::arrive(full);
    }
    queries.next();
  }

  DEV void copyQuery(uint32_t full) const {
    int32_t place[4];
    ptx::loadShared16(kLoaderItem, place);
    const int32_t batch = place[0], head = place[1], rate = kHasDocumentTiles ? 1 : place[3];
    const int32_t row = place[2] / rate, residue = place[2] - row * rate;
    const int32_t map = mapOfClass(rateSlot<QueryRates>(rate), rate, residue, p.seqlenQ);
    const uint32_t to = kQueryTile + queries.slot() * KernelTraits::kSmemStageBytesQ;
#pragma unroll
    for (int column = 0; column < kColumns<KernelTraits::kHeadDim>; ++column)
      ptx::copyBox(to + column * KernelTraits::kBlockM * kColumnRowBytes, &p.maps[kQueryMaps + map], full,
                   column * kColumnElements, row, residue, head, batch);
  }

  const KernelParams &p;
  PackedRingCursor<kPlanSlots> plan;
  PackedRingCursor<kQueryStages> queries;
  PackedRingCursor<kStages> keys, values;
};

} // namespace heddle
