// What the estimate is made of: a lattice that classes do not keep is walked in all its columns, and a tile of more
// classes than its band needs spans as many times more positions.
#include "dialect/Geometry/RowRate.h"
#include "dialect/Geometry/Lattice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace heddle::attn {
namespace {

constexpr int64_t kTile = 128, kPositions = 32768; ///< of the call that the estimate is made for
constexpr double kMaskedTimes = 1.25;              ///< a tile whose pairs are asked one by one takes so much longer

constexpr std::vector<Congruence> Piece::*kRowLattices[] = {&Piece::qLattice, &Piece::tie};

/// Columns that one row reaches, between the first and the last.
int64_t reachOf(const Piece &piece) {
  int64_t reach = kPositions;
  if (piece.diagonal.lower && piece.diagonal.upper)
    reach = std::min(reach, (piece.diagonal.upper - piece.diagonal.lower + 1).constant().value_or(reach));
  for (const CellLoop &cells : piece.cells)
    if (cells.isEven())
      reach = std::min(reach, cells.span.constant().value_or(reach));
  return std::max<int64_t>(reach, 1);
}

/// What tiles of a piece depend on.
struct PieceRates {
  std::vector<int64_t> rows, ties;
  int64_t columns = 1, columnsOfCells = 1; ///< those of cells differ: no tile has one class of them
  int64_t reach;

  explicit PieceRates(const Piece &piece) : reach(reachOf(piece)) {
    for (const Congruence &congruence : piece.qLattice)
      rows.push_back(congruence.modulus);
    for (const Congruence &congruence : piece.tie)
      ties.push_back(congruence.modulus);
    for (const Congruence &congruence : piece.kLattice) {
      int64_t &moduli = congruence.residue.dependsOn(Symbol::Cell) ? columnsOfCells : columns;
      moduli = std::min(std::lcm(moduli, congruence.modulus), kMaxRate);
    }
  }

  bool isKeptBy(int64_t rate) const { return known(rows, rate) == common(rows) && known(ties, rate) == common(ties); }
  int64_t columnRate(int64_t rate) const { return std::min(std::lcm(columns, known(ties, rate)), kMaxRate); }
  /// The share of the classes of rows that have columns: rows and columns that are tied meet in some of them only.
  double share(int64_t rate) const {
    const int64_t tied = std::gcd(known(ties, rate), std::min(std::lcm(columns, columnsOfCells), kMaxRate));
    return 1.0 / double(std::lcm(known(rows, rate), tied));
  }

private:
  static int64_t common(const std::vector<int64_t> &moduli) { return known(moduli, 0); }
  /// What rows in so many classes know of the moduli; all of them for 0.
  static int64_t known(const std::vector<int64_t> &moduli, int64_t rate) {
    int64_t common = 1;
    for (int64_t modulus : moduli)
      common = std::min(std::lcm(common, std::gcd(modulus, rate)), kMaxRate);
    return common;
  }
};

/// Visited by one tile of rows, on average: those of all pieces, but none twice.
double columnTiles(const std::vector<PieceRates> &branch, int64_t rate) {
  const int64_t columnRate = branch.empty() ? 1 : branch.front().columnRate(rate);
  const bool isCommon = std::all_of(branch.begin(), branch.end(),
                                    [&](const PieceRates &piece) { return piece.columnRate(rate) == columnRate; });
  double tiles = 0, most = 0;
  for (const PieceRates &piece : branch) {
    const int64_t reach = std::min(rate * kTile + piece.reach, kPositions);
    const double visited = double(reach) / double(kTile * (isCommon ? columnRate : 1)) + 1;
    const double times = piece.isKeptBy(rate) ? 1 : kMaskedTimes;
    tiles += visited * times * piece.share(rate);
    most = std::max(most, visited * times);
  }
  return std::min(tiles, most);
}

double estimatedTiles(const std::vector<std::vector<PieceRates>> &branches, int64_t rate) {
  const int64_t rows = (kPositions + rate - 1) / rate, rowTiles = rate * ((rows + kTile - 1) / kTile);
  double tiles = 0;
  for (const std::vector<PieceRates> &branch : branches)
    tiles += columnTiles(branch, rate);
  return double(rowTiles) * tiles;
}

/// The moduli of rows, each once.
std::set<int64_t> rowModuli(const std::vector<PieceList> &branches) {
  std::set<int64_t> moduli;
  for (const PieceList &pieces : branches)
    for (const Piece &piece : pieces)
      for (auto lattice : kRowLattices)
        for (const Congruence &congruence : piece.*lattice)
          moduli.insert(congruence.modulus);
  return moduli;
}

/// Common multiples of divisors of the moduli.
std::set<int64_t> candidates(const std::set<int64_t> &moduli, int64_t most) {
  std::set<int64_t> rates = {1};
  for (int64_t modulus : moduli)
    for (int64_t divisor = 2; divisor <= std::min(modulus, most); ++divisor) {
      if (modulus % divisor != 0)
        continue;
      for (int64_t rate : std::vector<int64_t>(rates.begin(), rates.end()))
        if (std::lcm(rate, divisor) <= most)
          rates.insert(std::lcm(rate, divisor));
    }
  return rates;
}

} // namespace

RowRateLimits rowRateLimits(size_t variants) {
  RowRateLimits limits;
  const double common = std::floor(std::pow(double(kMaxRate), 1.0 / double(variants)) + 1e-9);
  limits.most = std::clamp(int64_t(common), limits.exact, limits.most);
  return limits;
}

int64_t chooseRowRate(const std::vector<PieceList> &branches, const RowRateLimits &limits) {
  int64_t common = 1;
  const std::set<int64_t> moduli = rowModuli(branches);
  for (int64_t modulus : moduli)
    common = common > limits.exact ? common : std::lcm(common, modulus);
  if (common <= limits.exact)
    return common;
  std::vector<std::vector<PieceRates>> rates;
  for (const PieceList &pieces : branches)
    rates.emplace_back(pieces.begin(), pieces.end());
  int64_t best = 1;
  double fewest = std::numeric_limits<double>::infinity();
  for (int64_t rate : candidates(moduli, std::max(limits.exact, limits.most)))
    if (const double tiles = estimatedTiles(rates, rate); tiles <= fewest) { // of equals the most classes
      fewest = tiles;
      best = rate;
    }
  return best;
}

void widenRows(Piece &piece, int64_t rowRate) {
  for (auto lattice : kRowLattices) {
    std::vector<Congruence> &congruences = piece.*lattice;
    for (Congruence &congruence : congruences) {
      const int64_t known = std::gcd(congruence.modulus, rowRate);
      if (known != congruence.modulus) {
        piece.masked = true;
        piece.reason = "its rate is split into fewer classes";
      }
      congruence.modulus = known;
    }
    congruences.erase(std::remove_if(congruences.begin(), congruences.end(),
                                     [](const Congruence &congruence) { return congruence.modulus == 1; }),
                      congruences.end());
  }
}

} // namespace heddle::attn
