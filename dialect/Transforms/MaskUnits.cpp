#include "dialect/Transforms/MaskUnits.h"

#include <algorithm>

using namespace mlir;

namespace heddle::attn {
namespace {

int64_t floorQuotient(int64_t a, int64_t b) { return a / b - ((a % b != 0) && (a < 0)); }

bool hasBit(uint64_t bits, unsigned v) { return bits >> v & 1; }

void append(std::string &key, const char *name, const std::vector<SizeBound> &bounds) {
  key += name;
  for (const SizeBound &bound : bounds)
    key += bound.key() + " ";
}

void append(std::string &key, const char *name, const std::optional<SizeBound> &bound) {
  key += name + (bound ? bound->key() : "");
}

std::string keyOf(const MaskAtoms &atoms, const std::vector<Cube> &cubes) {
  std::string key;
  for (const Cube &cube : cubes) {
    for (unsigned v = 0; v < atoms.all().size(); ++v)
      if (hasBit(cube.positive | cube.negative, v))
        key += (hasBit(cube.negative, v) ? "-" : "+") + atoms.all()[v].key;
    key += ";";
  }
  return key;
}

void setKey(const MaskAtoms &atoms, MaskUnit &unit) {
  std::string key = std::to_string(unit.kind) + (unit.isNegated ? "!" : "");
  if (unit.kind == MaskUnit::Inside) {
    std::sort(unit.cubes.begin(), unit.cubes.end(),
              [&](const Cube &a, const Cube &b) { return keyOf(atoms, {a}) < keyOf(atoms, {b}); });
    key += atoms.place(unit.place).key + ":" + keyOf(atoms, unit.cubes);
  } else if (unit.kind == MaskUnit::Leaf) {
    key += atoms.all()[unit.atom].key;
  } else if (unit.kind == MaskUnit::Band) {
    append(key, ">", unit.band.atLeast);
    append(key, "<", unit.band.atMost);
    append(key, "b", unit.band.below);
    append(key, "a", unit.band.above);
    if (unit.band.hole)
      append(key, "h", {unit.band.hole->first, unit.band.hole->second});
  } else {
    const EdgeUnit &edges = unit.edges;
    for (const auto &[name, bound] :
         {std::pair("q", edges.firstQ), std::pair("p", edges.lastQ), std::pair("k", edges.firstK),
          std::pair("l", edges.lastK), std::pair("f", edges.fromQ), std::pair("g", edges.fromK)})
      append(key, name, bound);
  }
  unit.key = std::move(key);
}

void sort(MaskProduct &product) {
  std::sort(product.begin(), product.end(), [](const MaskUnit &a, const MaskUnit &b) {
    return std::pair(a.rankInProduct(), a.key) < std::pair(b.rankInProduct(), b.key);
  });
}

/// Takes one product of atoms apart.
class Decomposition {
public:
  Decomposition(const MaskAtoms &atoms, const Cube &cube, unsigned place) : atoms(atoms), here(place) {
    for (unsigned v = 0; v < atoms.all().size(); ++v)
      if (hasBit(cube.positive | cube.negative, v))
        place_(v, hasBit(cube.negative, v));
  }

  MaskProduct units() {
    passBand();
    for (auto &[key, child] : children)
      addChild(child);
    addBand();
    joinEdges();
    for (MaskUnit &unit : product)
      setKey(atoms, unit);
    sort(product);
    return std::move(product);
  }

private:
  struct Child {
    unsigned place = 0;
    Cube cube;
    bool isEntered(const MaskAtoms &atoms) const { return cube.positive != 0 || !atoms.place(place).own.isGuarded; }
  };

  static void add(Cube &cube, unsigned v, bool isNegated) {
    (isNegated ? cube.negative : cube.positive) |= uint64_t(1) << v;
  }

  void place_(unsigned v, bool isNegated) {
    const MaskAtom &atom = atoms.all()[v];
    if (atom.place != here && atoms.isInside(atom.place, here)) {
      unsigned child = atom.place;
      while (atoms.place(child).parent != here)
        child = atoms.place(child).parent;
      Child &into = children[atoms.place(child).key];
      into.place = child;
      add(into.cube, v, isNegated);
    } else if (atom.kind == MaskAtom::UpTo) {
      add(band, v, isNegated);
    } else if (atom.kind == MaskAtom::First || atom.kind == MaskAtom::Last) {
      addEdge(atom, isNegated);
    } else if (atom.kind != MaskAtom::Place) {
      MaskUnit leaf{MaskUnit::Leaf, isNegated};
      leaf.atom = v;
      product.push_back(leaf);
    }
  }

  /// Distances in the place are those around it, or a known part of them.
  bool canPassTo(unsigned place) const {
    const std::optional<int64_t> stride = atoms.place(place).own.stride;
    bool areLiteral = true;
    for (unsigned v = 0; v < atoms.all().size(); ++v)
      if (hasBit(band.positive | band.negative, v))
        areLiteral &= atoms.all()[v].bound.isLiteral();
    return stride && (*stride == 1 || areLiteral);
  }

  void passBand() {
    for (auto &[key, child] : children)
      if (child.isEntered(atoms) && canPassTo(child.place)) {
        child.cube.positive |= band.positive;
        child.cube.negative |= band.negative;
        band = {};
      }
  }

  void addChild(const Child &child) {
    MaskUnit unit{MaskUnit::Inside, !child.isEntered(atoms)};
    unit.place = child.place;
    if (!unit.isNegated)
      unit.cubes = {child.cube};
    for (unsigned v = 0; unit.isNegated && v < atoms.all().size(); ++v)
      if (hasBit(child.cube.negative, v))
        unit.cubes.push_back({uint64_t(1) << v, 0});
    product.push_back(unit);
  }

  /// In the coordinates of this place.
  SizeBound localOf(const MaskAtom &atom) const {
    SizeBound bound = atom.bound;
    if (bound.isLiteral())
      bound.constant = floorQuotient(bound.constant * atoms.place(atom.place).scale, atoms.place(here).scale);
    return bound;
  }

  void addBand() {
    MaskUnit unit{MaskUnit::Band};
    for (unsigned v = 0; v < atoms.all().size(); ++v) {
      const bool isNegated = hasBit(band.negative, v);
      if (!isNegated && !hasBit(band.positive, v))
        continue;
      const SizeBound bound = localOf(atoms.all()[v]);
      const bool isBehind = bound.isLiteral() ? bound.constant < 0 : bound.sign < 0;
      const SizeBound size = isBehind ? bound.negatedLess(1) : bound;
      (isBehind    ? isNegated ? unit.band.atLeast : unit.band.below
       : isNegated ? unit.band.above
                   : unit.band.atMost)
          .push_back(size);
    }
    if (band.positive || band.negative)
      product.push_back(unit);
  }

  void addEdge(const MaskAtom &atom, bool isNegated) {
    MaskUnit unit{MaskUnit::Edges, isNegated};
    EdgeUnit &edges = unit.edges;
    const bool isQuery = atom.axis == Axis::q;
    if (atom.kind == MaskAtom::First)
      (isQuery ? edges.firstQ : edges.firstK) = atom.bound;
    else
      (isQuery ? edges.lastQ : edges.lastK) = atom.bound;
    product.push_back(unit);
  }

  using EdgeBound = std::optional<SizeBound> EdgeUnit::*;

  /// The only unit that names this edge, and no other one.
  MaskUnit *edgeUnit(EdgeBound bound, bool isNegated) {
    MaskUnit *found = nullptr;
    for (MaskUnit &unit : product)
      if (unit.kind == MaskUnit::Edges && unit.isNegated == isNegated && unit.edges.*bound) {
        if (found)
          return nullptr;
        found = &unit;
      }
    return found;
  }

  void erase(MaskUnit *unit) { product.erase(product.begin() + (unit - product.data())); }

  /// Neither the first nor the last rows; boxes, which as four masks are another text, whose kernels no store knows.
  void joinEdges() {
    for (auto [first, last] :
         {std::pair(&EdgeUnit::firstQ, &EdgeUnit::lastQ), std::pair(&EdgeUnit::firstK, &EdgeUnit::lastK)}) {
      MaskUnit *a = edgeUnit(first, true), *b = edgeUnit(last, true);
      if (a && b && !edgeUnit(first, false)) {
        a->edges.*last = b->edges.*last;
        erase(b);
      }
    }
    MaskUnit *rows = edgeUnit(&EdgeUnit::firstQ, false), *columns = edgeUnit(&EdgeUnit::firstK, false);
    MaskUnit *before = edgeUnit(&EdgeUnit::firstQ, true), *beside = edgeUnit(&EdgeUnit::firstK, true);
    if (!rows || !columns || (!before && !beside))
      return;
    EdgeUnit &box = rows->edges;
    box.firstK = columns->edges.firstK;
    box.fromQ = before ? before->edges.firstQ : SizeBound{};
    box.fromK = beside ? beside->edges.firstK : SizeBound{};
    std::vector<MaskUnit *> merged = {columns};
    for (MaskUnit *unit : {before, beside})
      if (unit)
        merged.push_back(unit);
    std::sort(merged.begin(), merged.end(), std::greater<>());
    for (MaskUnit *unit : merged)
      erase(unit);
  }

  const MaskAtoms &atoms;
  unsigned here;
  Cube band;
  std::map<std::string, Child> children;
  MaskProduct product;
};

bool isBehindOnly(const BandUnit &band) {
  return !band.hole && band.below.size() == 1 && band.above.empty() && band.atMost.empty() && band.atLeast.size() <= 1;
}
bool isAheadOnly(const BandUnit &band) {
  return !band.hole && band.above.size() == 1 && band.below.empty() && band.atLeast.empty() && band.atMost.size() <= 1;
}

bool isFirstOnly(const EdgeUnit &edges, bool isQuery) {
  const int others = edges.lastQ.has_value() + edges.lastK.has_value() + edges.fromQ.has_value() +
                     edges.fromK.has_value() + (isQuery ? edges.firstK : edges.firstQ).has_value();
  return (isQuery ? edges.firstQ : edges.firstK) && others == 0;
}
bool isLastOnly(const EdgeUnit &edges, bool isQuery) {
  const int others =
      edges.firstQ.has_value() + edges.firstK.has_value() + (isQuery ? edges.lastK : edges.lastQ).has_value();
  return (isQuery ? edges.lastQ : edges.lastK) && others == 0;
}

std::vector<Cube> meetOf(const std::vector<Cube> &a, const std::vector<Cube> &b) {
  std::vector<Cube> result;
  for (const Cube &left : a)
    for (const Cube &right : b)
      result.push_back({left.positive | right.positive, left.negative | right.negative});
  return result;
}

/// A unit that is the union of two, if there is one.
std::optional<MaskUnit> unionOf(const MaskUnit &a, const MaskUnit &b) {
  if (a.kind != b.kind || a.isNegated != b.isNegated)
    return std::nullopt;
  MaskUnit both = a;
  if (a.isNegated) {
    constexpr size_t kMost = 16;
    if (a.kind != MaskUnit::Inside || a.place != b.place || a.cubes.size() * b.cubes.size() > kMost)
      return std::nullopt;
    both.cubes = meetOf(a.cubes, b.cubes); // what either leaves out is what both together do
    return both;
  }
  if (a.kind == MaskUnit::Inside && a.place == b.place) {
    both.cubes.insert(both.cubes.end(), b.cubes.begin(), b.cubes.end());
    return both;
  }
  if (a.kind == MaskUnit::Band && isBehindOnly(a.band) && isAheadOnly(b.band) &&
      a.band.atLeast.size() == b.band.atMost.size()) {
    both.band = {a.band.atLeast, b.band.atMost, {}, {}, std::pair(a.band.below[0], b.band.above[0])};
    return both;
  }
  for (bool isQuery : {true, false})
    if (a.kind == MaskUnit::Edges && isFirstOnly(a.edges, isQuery) && isLastOnly(b.edges, isQuery)) {
      (isQuery ? both.edges.lastQ : both.edges.lastK) = isQuery ? b.edges.lastQ : b.edges.lastK;
      return both;
    }
  return std::nullopt;
}

/// The product whose one unit that `b` lacks is joined with the one unit of `b` that `a` lacks.
std::optional<MaskProduct> unionOf(const MaskAtoms &atoms, const MaskProduct &a, const MaskProduct &b) {
  auto lacks = [](const MaskProduct &product, const MaskUnit &unit) {
    return llvm::none_of(product, [&](const MaskUnit &other) { return other.key == unit.key; });
  };
  MaskProduct joined, onlyA, onlyB;
  for (const MaskUnit &unit : a)
    (lacks(b, unit) ? onlyA : joined).push_back(unit);
  for (const MaskUnit &unit : b)
    if (lacks(a, unit))
      onlyB.push_back(unit);
  if (onlyA.size() != 1 || onlyB.size() != 1)
    return std::nullopt;
  std::optional<MaskUnit> both = unionOf(onlyA[0], onlyB[0]);
  if (!both)
    return std::nullopt;
  setKey(atoms, *both);
  joined.push_back(std::move(*both));
  sort(joined);
  return joined;
}

bool joinOnce(const MaskAtoms &atoms, std::vector<MaskProduct> &products) {
  for (size_t i = 0; i < products.size(); ++i)
    for (size_t j = 0; j < products.size(); ++j)
      if (std::optional<MaskProduct> both = i == j ? std::nullopt : unionOf(atoms, products[i], products[j])) {
        products[i] = std::move(*both);
        products.erase(products.begin() + j);
        return true;
      }
  return false;
}

void sort(const MaskAtoms &atoms, std::vector<MaskProduct> &products) {
  auto rank = [&](const MaskProduct &product) {
    unsigned largest = 0;
    for (const MaskUnit &unit : product)
      largest = std::max(largest, unit.rankInUnion(atoms));
    return largest;
  };
  std::sort(products.begin(), products.end(), [&](const MaskProduct &a, const MaskProduct &b) {
    if (rank(a) != rank(b))
      return rank(a) < rank(b);
    return std::lexicographical_compare(
        a.begin(), a.end(), b.begin(), b.end(), [&](const MaskUnit &x, const MaskUnit &y) {
          return std::pair(x.rankInUnion(atoms), x.key) < std::pair(y.rankInUnion(atoms), y.key);
        });
  });
}

} // namespace

unsigned MaskUnit::rankInProduct() const {
  if (isNegated)
    return 4;
  switch (kind) {
  case Inside:
    return 0;
  case Edges:
    return 1;
  case Band:
    return 2;
  case Leaf:
    return 3;
  }
  return 0;
}

unsigned MaskUnit::rankInUnion(const MaskAtoms &atoms) const {
  if (kind == Inside || kind == Band)
    return 1;
  if (kind == Edges)
    return edges.firstQ || edges.lastQ ? 2 : 3;
  const MaskAtom &leaf = atoms.all()[atom];
  if (leaf.kind == MaskAtom::Prefix)
    return 1;
  if (leaf.kind == MaskAtom::Residue)
    return 4;
  return leaf.rank;
}

MaskProduct productOf(const MaskAtoms &atoms, const Cube &cube, unsigned place) {
  return Decomposition(atoms, cube, place).units();
}

void joinProducts(const MaskAtoms &atoms, std::vector<MaskProduct> &products) {
  sort(atoms, products);
  while (joinOnce(atoms, products))
    sort(atoms, products);
}

MaskProduct takeCommon(std::vector<MaskProduct> &products) {
  MaskProduct common;
  if (products.size() < 2)
    return common;
  for (const MaskUnit &unit : products[0]) {
    auto has = [&](const MaskProduct &product) {
      return llvm::any_of(product, [&](const MaskUnit &other) { return other.key == unit.key; });
    };
    if (llvm::all_of(products, has))
      common.push_back(unit);
  }
  for (MaskProduct &product : products)
    llvm::erase_if(product, [&](const MaskUnit &unit) {
      return llvm::any_of(common, [&](const MaskUnit &other) { return other.key == unit.key; });
    });
  return common;
}

} // namespace heddle::attn
