// The permutations of attn.random: bijections with an inverse for every extent, the same in the host's text, in the
// definition and in the device's text, the last one run by 32 threads that stand for the lanes of a warp.
#include "compiler/Oracle/PatternOracle.h"
#include "dialect/IR/ListCalls.h"
#include "dialect/Geometry/CellList.h"

#include <atomic>
#include <condition_variable>
#include <doctest/doctest.h>
#include <mutex>
#include <random>
#include <set>
#include <thread>

using heddle::attn::KeyedPermutation;
using heddle::attn::kNoCell;

// What the device's text needs, for threads that wait for each other: see lanes_as_threads/Ptx/warp.cuh.
#define DEV inline
using std::max;
using std::min;
namespace {

int __clz(int value) { return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value)); }

/// Lets all threads through when the last one has come; each leaves a value that all of them see.
class Warp {
public:
  static constexpr int kLanes = 32;
  std::vector<int32_t> exchange(int lane, int32_t value) {
    std::unique_lock<std::mutex> lock(mutex);
    values[lane] = value;
    if (++arrived == kLanes) {
      arrived = 0;
      ++round;
      seen[round % 2] = values; // of this round; nobody is two rounds behind
      everybody.notify_all();
      return seen[round % 2];
    }
    const int64_t mine = round + 1;
    everybody.wait(lock, [&] { return round >= mine; });
    return seen[mine % 2];
  }

private:
  std::mutex mutex;
  std::condition_variable everybody;
  std::vector<int32_t> values = std::vector<int32_t>(kLanes), seen[2];
  int arrived = 0;
  int64_t round = 0;
};

Warp warp;
thread_local int ownLane = 0;

} // namespace

struct KernelTraits;
#include "codegen/Skeletons/Shared/random_cells_transposed.cuh"

TEST_CASE("every pi_t is a permutation, and its inverse is found") {
  auto check = [](uint32_t extent) {
    for (uint32_t index : {0u, 1u, 77u}) {
      KeyedPermutation permutation(5, index % 2, index, extent);
      std::vector<char> isHit(extent);
      bool isInverse = true;
      for (uint32_t cell = 0; cell < extent; ++cell) {
        uint32_t image = permutation.image(cell);
        REQUIRE(image < extent);
        isHit[image] = 1;
        isInverse &= permutation.preimage(image) == cell;
      }
      CHECK(isInverse);
      CHECK(std::count(isHit.begin(), isHit.end(), 1) == extent);
    }
  };
  for (uint32_t extent = 1; extent <= 300; ++extent)
    check(extent);
  for (uint32_t extent : {4095u, 4096u, 4097u, 65537u})
    check(extent);
}

TEST_CASE("the largest extents") {
  std::mt19937 random(1);
  for (uint32_t extent : {1u << 20, (1u << 24) + 1, (1u << 30) + 12345, 0x7fffffffu}) {
    KeyedPermutation permutation(1, 0, 3, extent);
    for (int i = 0; i < 100; ++i) {
      uint32_t cell = random() % extent, image = permutation.image(cell);
      CHECK(image < extent);
      CHECK(permutation.preimage(image) == cell);
      CHECK(image == heddle::oracle::randomCell(1, -1, 3, extent, cell));
    }
  }
}

TEST_CASE("golden values of another implementation") {
  // In Python, from docs/language.md:
  //   M, A, B, C = 0xffffffff, 0x9e3779b9, 0x6a09e667, 0xbb67ae85
  //   def mix(x):
  //     x = ((x ^ x >> 16) * B) & M; x = ((x ^ x >> 15) * C) & M; return x ^ x >> 16
  //   def cell(seed, head, t, n, q):
  //     key = mix((mix((seed + A * (head + 1)) & M) + A * t) & M); b = max(2, (n - 1).bit_length()); c = (b + 1) // 2
  //     def F(x, r): w = ((x ^ ((key + A * r) & M)) * B) & M; return ((w ^ w >> 15) * C & M) >> 16
  //     while True:
  //       l, h = q & (1 << c) - 1, q >> c
  //       for r in range(6):
  //         if r % 2 == 0: l ^= F(h, r) & (1 << c) - 1
  //         else: h ^= F(l, r) & (1 << b // 2) - 1
  //       q = h << c | l
  //       if q < n: return q
  auto row = [](uint32_t seed, int64_t head, uint32_t extent, uint32_t cell, uint32_t count) {
    std::vector<uint32_t> cells;
    for (uint32_t index = 0; index < count; ++index)
      cells.push_back(KeyedPermutation(seed, static_cast<uint32_t>(head + 1), index, extent).image(cell));
    return cells;
  };
  using Cells = std::vector<uint32_t>;
  CHECK(row(0, -1, 256, 0, 4) == Cells{10, 59, 49, 186});
  CHECK(row(0, -1, 256, 1, 4) == Cells{173, 135, 246, 156});
  CHECK(row(0, -1, 256, 255, 4) == Cells{44, 191, 172, 46});
  CHECK(row(5, 2, 100, 0, 5) == Cells{80, 8, 29, 82, 56});
  CHECK(row(5, 2, 100, 57, 5) == Cells{57, 65, 16, 48, 21});
  for (auto [extent, image] :
       {std::pair(1u, 0u), {2u, 0u}, {3u, 1u}, {5u, 1u}, {1000u, 255u}, {65537u, 9249u}, {1u << 20, 409804u}})
    CHECK(KeyedPermutation(1, 0, 0, extent).image(extent - 1) == image);
}

TEST_CASE("host, definition and device agree on lists") {
  for (int32_t extent : {1, 2, 3, 7, 8, 33, 100, 256, 1000})
    for (int32_t count : {0, 1, 5, 40})
      for (int32_t head : {0, 3})
        for (int32_t row : {-1, 0, extent / 2, extent - 1, extent}) {
          std::set<int64_t> expected;
          for (int32_t index = 0; row >= 0 && row < extent && index < std::min(count, extent); ++index)
            expected.insert(heddle::oracle::randomCell(9, head - 1, index, extent, row));
          std::vector<int64_t> cells = heddle::attn::randomCells()->cells({count, 9, head, extent}, row);
          CHECK(cells == std::vector<int64_t>(expected.begin(), expected.end()));
          bool isSame = true;
          for (int32_t cell = 0; cell < extent; ++cell) {
            isSame &= heddle::attn::randomCellsHas(count, 9, head, extent, row, cell) == (expected.count(cell) > 0);
            isSame &= heddle::random_cells_has(count, 9, head, extent, row, cell) == (expected.count(cell) > 0);
            auto next = expected.lower_bound(cell);
            isSame &= heddle::attn::randomCellsNext(count, 9, head, extent, row, cell) ==
                      (next == expected.end() ? kNoCell : *next);
          }
          CHECK(isSame);
        }
}

TEST_CASE("transposed lists name the rows that name a cell") {
  std::vector<heddle::attn::IntExpr> same;
  auto rule = heddle::attn::randomCells(), inverse = rule->transposed(same);
  for (int64_t extent : {1, 2, 9, 64}) {
    const std::vector<int64_t> arguments = {4, 11, 0, extent};
    std::set<std::pair<int64_t, int64_t>> forward, transposed;
    for (int64_t row = 0; row < extent; ++row) {
      for (int64_t cell : rule->cells(arguments, row))
        forward.insert({row, cell});
      for (int64_t cell : inverse->cells(arguments, row))
        transposed.insert({cell, row});
    }
    CHECK(forward == transposed);
  }
}

/// What all lanes give, side by side.
template <class Ask> static std::vector<int32_t> askTogether(Ask ask) {
  std::vector<int32_t> answers(Warp::kLanes);
  std::vector<std::thread> lanes;
  for (int lane = 0; lane < Warp::kLanes; ++lane)
    lanes.emplace_back([&, lane] {
      ownLane = lane;
      answers[lane] = ask(lane);
    });
  for (std::thread &lane : lanes)
    lane.join();
  return answers;
}

TEST_CASE("rows that take turns in one place, and cells of several windows, from wherever one asks") {
  const int32_t count = 40, seed = 3;
  heddle::NotedCells::clear();
  std::mt19937 random(11);
  for (int32_t extent : {1, 33, 1024, 1025, 5000, 100000}) // windows of 1024 cells
    for (int round = 0; round < 12; ++round) {
      const int32_t row = round % 3 * heddle::NotedCells::kSlots % extent, head = round % 2;
      int32_t from = round % 4 ? int32_t(random() % uint32_t(extent + 2)) : -5;
      for (int step = 0; step < 3 && from != kNoCell; ++step) {
        const int32_t expected = heddle::attn::randomCellsNext(count, seed, head, extent, row, from);
        auto ask = [&](int) { return heddle::random_cells_next(count, seed, head, extent, row, from); };
        CHECK(askTogether(ask) == std::vector<int32_t>(Warp::kLanes, expected));
        auto search = [&](int) {
          return heddle::searchRandomCells(heddle::RandomList{count, seed, head, extent, row}, from);
        };
        CHECK(askTogether(search) == std::vector<int32_t>(Warp::kLanes, expected));
        auto askInverse = [&](int) {
          return heddle::random_cells_transposed_next(count, seed, head, extent, row, from);
        };
        const int32_t naming = heddle::attn::randomCellsTransposedNext(count, seed, head, extent, row, from);
        CHECK(askTogether(askInverse) == std::vector<int32_t>(Warp::kLanes, naming));
        from = expected == kNoCell ? kNoCell : expected + 1;
      }
    }
}

TEST_CASE("a warp finds the next cells of all its lanes") {
  struct Question {
    int32_t row, from, extent;
  };
  const int32_t seed = 3, head = 0;
  std::mt19937 random(7);
  for (auto [count, distinct] :
       {std::pair(3, 1), {70, 1}, {3, 2}, {70, 2}, {3, 3}, {70, 4}, {70, 5}, {3, 32}, {70, 32}}) {
    std::vector<Question> questions(Warp::kLanes);
    for (int lane = 0; lane < Warp::kLanes; ++lane)
      questions[lane] = lane < distinct ? Question{int32_t(random() % 520) - 10, int32_t(random() % 520) - 10,
                                                   random() % 4 ? 500 : 70}
                                        : questions[random() % distinct];
    std::vector<int32_t> answers(Warp::kLanes);
    std::vector<std::thread> lanes;
    for (int lane = 0; lane < Warp::kLanes; ++lane)
      lanes.emplace_back([&, lane, count = count] {
        ownLane = lane;
        answers[lane] = heddle::random_cells_next(count, seed, head, questions[lane].extent, questions[lane].row,
                                                  questions[lane].from);
      });
    for (std::thread &lane : lanes)
      lane.join();
    for (int lane = 0; lane < Warp::kLanes; ++lane)
      CHECK(answers[lane] == heddle::attn::randomCellsNext(count, seed, head, questions[lane].extent,
                                                           questions[lane].row, questions[lane].from));
  }
}
