#include "compiler/Io/ServedKeys.h"
#include "compiler/Io/SequenceTensors.h"
#include "runtime/Core/ParseCount.h"

#include <algorithm>
#include <numeric>

namespace heddle {
namespace {

/// Of keys and values together: beyond it sequences share pages. Many times the L2 of any GPU.
constexpr int64_t kMostCacheBytes = int64_t(2) << 30;
constexpr int64_t kMostKeys = int64_t(1) << 30; // positions are below it

int64_t pagesOf(int64_t keys, int64_t pageSize) { return (keys + pageSize - 1) / pageSize; }

/// Pages of the cache: each sequence's own, as far as so many are of use.
int64_t pagesInCache(const std::vector<int64_t> &lengths, int64_t pageSize, int64_t bytesOfOne) {
  int64_t needed = 0, longest = 1;
  for (int64_t keys : lengths) {
    needed += pagesOf(keys, pageSize);
    longest = std::max(longest, pagesOf(keys, pageSize));
  }
  return std::clamp(needed, longest, std::max(longest, kMostCacheBytes / (pageSize * bytesOfOne)));
}

/// Of inputs that have lengths, in the form that they have already.
void giveTables(AttentionInputs &inputs, const PageSizes &lie, HostTensor table) {
  if (inputs.isGiven(Role::sharedK))
    inputs.sharedK = shareFirstPages(lie, table, inputs.sequsedK);
  if (!inputs.isGiven(Role::kvIndptr)) {
    inputs.pageTable = std::move(table);
    return;
  }
  ChainedTables chain = chained(lie, table, inputs.sequsedK);
  inputs.sizes.maxPages = chain.entries.elements();
  inputs.kvIndptr = std::move(chain.offsets), inputs.kvIndices = std::move(chain.entries);
  inputs.kvLastPageLen = std::move(chain.lastLengths);
}

} // namespace

const char *keyPlacesName(KeyPlaces places) {
  switch (places) {
  case KeyPlaces::pages:
    return "pages";
  case KeyPlaces::lists:
    return "lists";
  case KeyPlaces::rows:
    return "rows";
  case KeyPlaces::indices:
    return "indices";
  }
  return "";
}

std::vector<KeyPlaces> allKeyPlaces() {
  return {KeyPlaces::pages, KeyPlaces::lists, KeyPlaces::rows, KeyPlaces::indices};
}

AttentionSizes KeyLayout::sizesWith(AttentionSizes sizes) const {
  sizes.sequences = sizes.batch;
  if (places == KeyPlaces::rows) {
    sizes.pages = 1, sizes.pageSize = sizes.batch * sizes.seqlenK, sizes.maxPages = 0;
    return sizes;
  }
  sizes.tables = places == KeyPlaces::lists ? sizes.kvHeads : 1;
  sizes.pageSize = pageSize;
  sizes.maxPages = pagesOf(sizes.seqlenK, pageSize);
  sizes.pages = sizes.tables * sizes.batch * sizes.maxPages;
  return sizes;
}

std::vector<Role> KeyLayout::roles() const {
  if (places == KeyPlaces::indices)
    return {Role::kvIndptr};
  return places == KeyPlaces::rows ? std::vector<Role>{Role::cuSeqlensK} : std::vector<Role>{};
}

std::optional<LengthRange> LengthRange::parse(const std::string &text) {
  const size_t dash = text.find('-');
  const std::optional<int64_t> least = parseCount(text.substr(0, dash)),
                               most = dash == std::string::npos ? least : parseCount(text.substr(dash + 1));
  if (!least || !most || *least < 0 || *most < std::max<int64_t>(*least, 1) || *most > kMostKeys)
    return std::nullopt;
  return LengthRange{*least, *most};
}

std::string LengthRange::text() const {
  return std::to_string(least) + (least == most ? "" : "-" + std::to_string(most));
}

int64_t ServedKeys::room() const { return pagesOf(lengths.most, layout.pageSize) * layout.pageSize; }

std::string ServedKeys::text() const {
  const std::string places = layout.places == KeyPlaces::rows ? "rows" : "pages of " + std::to_string(layout.pageSize);
  const bool hasName = layout.places == KeyPlaces::lists || layout.places == KeyPlaces::indices;
  return lengths.text() + " keys, " + places + (hasName ? std::string(", ") + keyPlacesName(layout.places) : "");
}

std::string ServedKeys::key() const {
  const std::string size = layout.places == KeyPlaces::rows ? "" : std::to_string(layout.pageSize);
  return "keys:" + lengths.text() + " " + keyPlacesName(layout.places) + ":" + size;
}

int64_t ServedBatch::keys() const { return std::accumulate(lengths.begin(), lengths.end(), int64_t(0)); }

int64_t bytesOfKey(const AttentionSizes &sizes, const CallElements &elements) {
  return sizes.kvHeads * (sizes.headDim + sizes.valueDim) * dtypeBytes(elements.k);
}

Result<ServedBatch> randomServedBatch(const AttentionSizes &call, const ServedKeys &keys, const CallElements &elements,
                                      const Kind &kind, uint64_t seed) {
  const KeyLayout &layout = keys.layout;
  ServedBatch batch;
  AttentionSizes sizes = layout.sizesWith(call);
  PageSizes lie = {sizes.sequences, sizes.pages, sizes.pageSize, sizes.maxPages, sizes.tables};
  const HostTensor lengths = randomLengthsBetween(lie, keys.lengths.least, keys.lengths.most, seed);
  for (int64_t list = 0; list < lengths.elements(); ++list)
    batch.lengths.push_back(int64_t(lengths.get(list)));
  const bool isInRows = layout.places == KeyPlaces::rows;
  const int64_t bytesOfOne = bytesOfKey(sizes, elements);
  if (isInRows && batch.keys() > kMostCacheBytes / bytesOfOne)
    return Status::invalidArgument("keys and values in rows have more than 2 GiB; take fewer or shorter sequences");
  if (isInRows)
    sizes.pageSize = batch.keys();
  else
    lie.pages = sizes.pages = pagesInCache(batch.lengths, sizes.pageSize, bytesOfOne);
  HEDDLE_ASSIGN(batch.inputs, randomAttentionInputs(sizes, elements.q, seed, kind, {layout.roles(), {}, elements.k}));
  batch.inputs.sequsedK = lengths;
  if (isInRows)
    batch.inputs.cuSeqlensK = offsetsOf(lengths);
  else
    giveTables(batch.inputs, lie, pageTableOf(lie, lengths, seed));
  return batch;
}

} // namespace heddle
