// Feistel networks with cycle walking.
#include "dialect/Geometry/CellList.h"

#include <algorithm>

namespace heddle::attn {
namespace {

constexpr uint32_t kStep = 0x9e3779b9, kFirst = 0x6a09e667, kSecond = 0xbb67ae85;
constexpr unsigned kRounds = 6;

uint32_t mixed(uint32_t word) {
  word = (word ^ word >> 16) * kFirst;
  word = (word ^ word >> 15) * kSecond;
  return word ^ word >> 16;
}

bool isInside(int64_t cell, int64_t extent) { return cell >= 0 && cell < extent; }

class RandomCells : public ListRule {
public:
  explicit RandomCells(bool isTransposed) : isTransposed(isTransposed) {}

  const char *name() const override { return isTransposed ? "random_cells_transposed" : "random_cells"; }
  const char *deviceFile() const override {
    return isTransposed ? "Shared/random_cells_transposed.cuh" : "Shared/random_cells.cuh";
  }
  bool isSearched() const override { return true; }
  std::shared_ptr<const ListRule> transposed(std::vector<IntExpr> &) const override { return of(!isTransposed); }

  static std::shared_ptr<const ListRule> of(bool isTransposed) {
    static const std::shared_ptr<const ListRule> rules[] = {std::make_shared<RandomCells>(false),
                                                            std::make_shared<RandomCells>(true)};
    return rules[isTransposed];
  }

  std::vector<int64_t> cells(const std::vector<int64_t> &arguments, int64_t row, const TensorData *) const override {
    std::vector<int64_t> cells;
    if (!isInside(row, arguments[3]))
      return cells;
    for (int64_t index = 0; index < longest(arguments, nullptr); ++index) {
      KeyedPermutation permutation(arguments[1], arguments[2], index, arguments[3]);
      cells.push_back(isTransposed ? permutation.preimage(row) : permutation.image(row));
    }
    std::sort(cells.begin(), cells.end());
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
    return cells;
  }

  int64_t longest(const std::vector<int64_t> &arguments, const TensorData *) const override {
    return std::max<int64_t>(std::min(arguments[0], arguments[3]), 0);
  }

  std::string inWords(const std::vector<int64_t> &arguments, const std::string &cells) const override {
    const std::string some = arguments[0] == 1 ? "one at random of the " : std::to_string(arguments[0]) + " random ";
    return some + cells + " for each of the query's, by seed " + std::to_string(arguments[1]) +
           (arguments[2] ? " and head" : "");
  }

private:
  bool isTransposed; ///< by the inverse permutations
};

} // namespace

KeyedPermutation::KeyedPermutation(uint32_t seed, uint32_t head, uint32_t index, uint32_t extent) : extent(extent) {
  key = mixed(mixed(seed + kStep * head) + kStep * index);
  unsigned bits = 2;
  while (bits < 32 && ((extent - 1) >> bits) != 0)
    ++bits;
  lowBits = (bits + 1) / 2;
  lowMask = (1u << lowBits) - 1;
  highMask = (1u << bits / 2) - 1;
}

uint32_t KeyedPermutation::round(unsigned number, uint32_t half) const {
  uint32_t word = (half ^ (key + kStep * number)) * kFirst;
  return (word ^ word >> 15) * kSecond >> 16;
}

uint32_t KeyedPermutation::encrypt(uint32_t cell) const {
  uint32_t low = cell & lowMask, high = cell >> lowBits;
  for (unsigned number = 0; number < kRounds; number += 2) {
    low ^= round(number, high) & lowMask;
    high ^= round(number + 1, low) & highMask;
  }
  return high << lowBits | low;
}

uint32_t KeyedPermutation::decrypt(uint32_t cell) const {
  uint32_t low = cell & lowMask, high = cell >> lowBits;
  for (unsigned number = kRounds; number > 0; number -= 2) {
    high ^= round(number - 1, low) & highMask;
    low ^= round(number - 2, high) & lowMask;
  }
  return high << lowBits | low;
}

uint32_t KeyedPermutation::image(uint32_t cell) const {
  do
    cell = encrypt(cell);
  while (cell >= extent);
  return cell;
}

uint32_t KeyedPermutation::preimage(uint32_t cell) const {
  do
    cell = decrypt(cell);
  while (cell >= extent);
  return cell;
}

std::shared_ptr<const ListRule> randomCells() { return RandomCells::of(/*isTransposed=*/false); }

int32_t randomCellsNext(int32_t count, int32_t seed, int32_t head, int32_t extent, int32_t row, int32_t from) {
  int32_t next = kNoCell;
  for (int32_t index = 0, length = randomCellsLength(count, seed, head, extent, row); index < length; ++index) {
    int32_t cell = randomCellsEntry(count, seed, head, extent, row, index);
    next = cell >= from ? std::min(next, cell) : next;
  }
  return next;
}

int32_t randomCellsTransposedNext(int32_t count, int32_t seed, int32_t head, int32_t extent, int32_t row,
                                  int32_t from) {
  int32_t next = kNoCell;
  for (int32_t index = 0, length = randomCellsLength(count, seed, head, extent, row); index < length; ++index) {
    const int32_t cell = static_cast<int32_t>(KeyedPermutation(seed, head, index, extent).preimage(row));
    next = cell >= from ? std::min(next, cell) : next;
  }
  return next;
}

bool randomCellsHas(int32_t count, int32_t seed, int32_t head, int32_t extent, int32_t row, int32_t cell) {
  for (int32_t index = 0, length = randomCellsLength(count, seed, head, extent, row); index < length; ++index)
    if (randomCellsEntry(count, seed, head, extent, row, index) == cell)
      return true;
  return false;
}

int32_t randomCellsLength(int32_t count, int32_t, int32_t, int32_t extent, int32_t row) {
  return isInside(row, extent) ? std::min(count, extent) : 0;
}

int32_t randomCellsEntry(int32_t, int32_t seed, int32_t head, int32_t extent, int32_t row, int32_t index) {
  return static_cast<int32_t>(KeyedPermutation(seed, head, index, extent).image(row));
}

} // namespace heddle::attn
