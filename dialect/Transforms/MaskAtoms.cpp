//===- MaskAtoms.cpp - masks as functions of atoms ------------------------===//
#include "dialect/Transforms/MaskAtoms.h"
#include "dialect/IR/Sizes.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace heddle::attn {
namespace {

/// So that the order of texts is that of numbers.
std::string padded(int64_t number) {
  std::string digits = std::to_string(number + (int64_t(1) << 60));
  return std::string(20 - digits.size(), '0') + digits;
}

/// The op without names and locations: kind, attributes, the pattern's arguments that it reads.
std::string keyOf(Operation *op) {
  std::string key = op->getName().getStringRef().str() + " ";
  llvm::raw_string_ostream stream(key);
  if (op->getNumRegions() > 0) {
    op->print(stream, OpPrintingFlags().printGenericOpForm().useLocalScope());
    return key;
  }
  stream << op->getAttrDictionary();
  for (Value operand : op->getOperands())
    if (auto argument = dyn_cast<BlockArgument>(operand))
      stream << " " << padded(argument.getArgNumber());
  return key;
}

/// The op with the offset that its rule gives in one group of heads; dead until it is used.
template <class Op> Operation *inGroup(Op op, int64_t group) {
  if (op.getRule() != OffsetRule::group)
    return op;
  OpBuilder builder(op);
  auto fixed = cast<Op>(builder.clone(*op));
  fixed.removeRuleAttr();
  fixed.setAt(group % int64_t(op.getRate()));
  return fixed;
}

SizeBound boundOf(const Sizes &sizes, unsigned index) {
  if (Value size = sizes.dynamicSize(index))
    return {1, cast<BlockArgument>(size).getArgNumber(), 0};
  return {0, 0, sizes.values[index]};
}

template <class Op> SizeBound boundOf(Op op, unsigned index) {
  return boundOf(Sizes{op.getDynamicSizes(), op.getSizes()}, index);
}

/// The rows and keys that dilation or a stride keeps.
struct ResidueClass {
  int64_t rate;
  std::optional<int64_t> at; ///< none: query and key are in one class, whichever
};

std::optional<ResidueClass> residueOf(Operation *op) {
  if (auto stride = dyn_cast<StrideOp>(op); stride && stride.getAt())
    return ResidueClass{int64_t(stride.getRate()), stride.getAt()};
  auto dilate = dyn_cast<DilateOp>(op);
  if (dilate && (dilate.getAt() || dilate.getRule() == OffsetRule::every))
    return ResidueClass{int64_t(dilate.getRate()), dilate.getAt()};
  return std::nullopt;
}

/// Of one kind of op: every pair that is in the first class is in the other.
bool isFiner(const std::optional<ResidueClass> &a, const std::optional<ResidueClass> &b) {
  return a && b && a->rate % b->rate == 0 && (!b->at || (a->at && *a->at % b->rate == *b->at));
}

bool neverMeet(const std::optional<ResidueClass> &a, const std::optional<ResidueClass> &b) {
  return a && b && a->at && b->at && (*a->at - *b->at) % std::gcd(a->rate, b->rate) != 0;
}

} // namespace

std::string SizeBound::key() const {
  return (isLiteral() ? "" : (sign < 0 ? "-" : "+") + padded(argument)) + padded(constant);
}

//===-- reading ---------------------------------------------------------------===//

/// One mask, for one choice of heads.
struct MaskAtoms::Reading {
  MaskAtoms &atoms;
  const HeadChoice &choice;
  SetFunctions &functions;
  bool isCollecting;
  unsigned group = 0;

  Set literal(MaskAtom atom) {
    const MaskPlace &place = atoms.places[atom.place];
    atom.key = std::to_string(atom.kind) + place.key + " " + std::to_string(int(atom.axis)) + atom.bound.key() +
               (atom.op ? keyOf(atom.op) : "");
    if (!isCollecting)
      return functions.variable(atoms.numbers.at(atom.key));
    atoms.found.emplace(atom.key, atom);
    return SetFunctions::kNone;
  }

  Set upTo(unsigned place, SizeBound bound) {
    while (atoms.places[place].base != place) {
      const MaskPlace &here = atoms.places[place];
      const int64_t step = here.scale / atoms.places[here.parent].scale;
      if (!bound.isLiteral() && step != 1)
        break;
      bound.constant *= step;
      place = here.parent;
    }
    return literal({MaskAtom::UpTo, place, Axis::q, bound, nullptr, {}});
  }

  Set window(WindowOp op, unsigned place) {
    const SizeBound left = boundOf(op, 0), right = boundOf(op, 1);
    auto isFar = [](const SizeBound &size) { return size.isLiteral() && size.constant >= kFarthest; };
    const Set behind = isFar(left) ? SetFunctions::kNone : upTo(place, left.negatedLess(1));
    return functions.both(functions.complement(behind), isFar(right) ? SetFunctions::kAll : upTo(place, right));
  }

  Set edge(MaskAtom::Kind kind, unsigned place, Axis axis, const SizeBound &size) {
    if (size.isLiteral() && size.constant == 0)
      return SetFunctions::kNone;
    return literal({kind, place, axis, size, nullptr, {}});
  }

  template <class Op> Set edges(Op op, unsigned place, Axis axis) {
    return functions.either(edge(MaskAtom::First, place, axis, boundOf(op, 0)),
                            edge(MaskAtom::Last, place, axis, boundOf(op, 1)));
  }

  Set box(BoxOp op, unsigned place) {
    auto inside = [&](Axis axis, unsigned first) {
      const Set before = edge(MaskAtom::First, place, axis, boundOf(op, first));
      return functions.both(edge(MaskAtom::First, place, axis, boundOf(op, first + 1)), functions.complement(before));
    };
    const Set rows = inside(Axis::q, 0);
    return functions.both(rows, inside(Axis::k, 2));
  }

  Set prefix(PrefixOp op, unsigned place) {
    const SizeBound length = boundOf(op, 0);
    if (length.isLiteral() && length.constant == 0)
      return upTo(place, {});
    return literal({MaskAtom::Prefix, place, Axis::k, length, nullptr, {}});
  }

  Set pulledBack(Operation *op, unsigned place) {
    if (auto dilate = dyn_cast<DilateOp>(op))
      op = inGroup(dilate, group);
    const unsigned inner = atoms.placeOf(op, place);
    const Set set = of(op->getOperand(0), inner);
    if (!atoms.places[inner].isGuarded)
      return set;
    return functions.both(literal({MaskAtom::Place, inner, Axis::q, {}, nullptr, {}}), set);
  }

  Set heads(HeadsOp op, unsigned place) {
    const unsigned around = std::exchange(group, choice.at(op.getMasks().size()));
    const Set set = of(op.getMasks()[group], place);
    group = around;
    return set;
  }

  template <class Op> Set joined(Op op, unsigned place, Set start, Set (SetFunctions::*join)(Set, Set)) {
    for (Value mask : op.getMasks())
      start = (functions.*join)(start, of(mask, place));
    return start;
  }

  Set leaf(Operation *op, unsigned place) {
    if (isa<FullOp>(op))
      return SetFunctions::kAll;
    if (isa<CausalOp>(op))
      return upTo(place, {});
    if (auto window = dyn_cast<WindowOp>(op))
      return this->window(window, place);
    if (auto rows = dyn_cast<RowsOp>(op))
      return edges(rows, place, Axis::q);
    if (auto cols = dyn_cast<ColsOp>(op))
      return edges(cols, place, Axis::k);
    if (auto box = dyn_cast<BoxOp>(op))
      return this->box(box, place);
    if (auto prefix = dyn_cast<PrefixOp>(op))
      return this->prefix(prefix, place);
    if (auto stride = dyn_cast<StrideOp>(op))
      return stride.getRate() == 1
                 ? SetFunctions::kAll
                 : literal({MaskAtom::Residue, place, stride.getAxis(), {}, inGroup(stride, group), {}});
    return literal({MaskAtom::Other, place, Axis::q, {}, op, {}});
  }

  /// The key of a leaf says nothing of a mask that it would be made of: two different masks would be one.
  static void requireLeaf(Operation *op) {
    if (llvm::any_of(op->getOperandTypes(), [](Type type) { return isa<MaskType>(type); }))
      throw std::logic_error("'" + op->getName().getStringRef().str() +
                             "' is made of another mask, and MaskAtoms does not know how");
  }

  Set of(Value mask, unsigned place) {
    Operation *op = mask.getDefiningOp();
    if (auto both = dyn_cast<AndOp>(op))
      return joined(both, place, SetFunctions::kAll, &SetFunctions::both);
    if (auto either = dyn_cast<OrOp>(op))
      return joined(either, place, SetFunctions::kNone, &SetFunctions::either);
    if (auto inverse = dyn_cast<NotOp>(op))
      return functions.complement(of(inverse.getOperand(), place));
    if (auto heads = dyn_cast<HeadsOp>(op))
      return this->heads(heads, place);
    if (auto dilate = dyn_cast<DilateOp>(op); dilate && dilate.getRate() == 1)
      return of(dilate.getOperand(), place);
    if (isa<SegmentOp, DilateOp, BlocksOp, DocumentsOp>(op))
      return pulledBack(op, place);
    requireLeaf(op);
    return leaf(op, place);
  }
};

unsigned MaskAtoms::placeOf(Operation *op, unsigned parent) {
  MaskPlace place{op, parent, 0, 1, !isa<BlocksOp>(op), places[parent].key + "/" + keyOf(op)};
  auto [known, isNew] = placeByKey.emplace(place.key, unsigned(places.size()));
  if (!isNew)
    return known->second;
  const bool keepsSteps = isa<SegmentOp, DilateOp>(op);
  place.base = keepsSteps ? places[parent].base : unsigned(places.size());
  if (keepsSteps)
    place.scale = places[parent].scale * (isa<DilateOp>(op) ? int64_t(cast<DilateOp>(op).getRate()) : 1);
  places.push_back(place);
  return known->second;
}

void MaskAtoms::collect(Value mask, const HeadChoice &choice) {
  SetFunctions unused;
  Reading{*this, choice, unused, true}.of(mask, 0);
}

bool MaskAtoms::number() {
  if (found.size() > SetFunctions::kMaxVariables)
    return false;
  for (auto &[key, atom] : found) {
    numbers[key] = unsigned(atoms.size());
    atoms.push_back(atom);
  }
  return true;
}

MaskAtoms::Set MaskAtoms::read(Value mask, const HeadChoice &choice, SetFunctions &functions) {
  return Reading{*this, choice, functions, false}.of(mask, 0);
}

bool MaskAtoms::isInside(unsigned place, unsigned outer) const {
  while (place != outer && place != 0)
    place = places[place].parent;
  return place == outer;
}

//===-- facts -----------------------------------------------------------------===//

bool MaskAtoms::isAtMost(const SizeBound &a, int64_t scaleA, const SizeBound &b, int64_t scaleB) const {
  auto least = [&](const SizeBound &bound) {
    PatternOp asked = pattern;
    return bound.isLiteral() ? 0 : asked.getParameterMinimum(bound.argument);
  };
  if (a.sign == b.sign && a.argument == b.argument && (a.isLiteral() || scaleA == scaleB))
    return a.constant * scaleA <= b.constant * scaleB;
  return a.sign <= 0 && b.sign >= 0 && (a.constant - least(a)) * scaleA <= (b.constant + least(b)) * scaleB;
}

/// In the place of `b`, where `a` holds `b` does.
bool MaskAtoms::implies(const MaskAtom &a, const MaskAtom &b) const {
  const MaskPlace &placeA = places[a.place], &placeB = places[b.place];
  if ((b.kind == MaskAtom::UpTo || b.kind == MaskAtom::Prefix) && placeA.base == placeB.base) {
    const SizeBound most = b.kind == MaskAtom::UpTo ? b.bound : SizeBound{}; // what is causal is in every prefix
    if (a.kind == MaskAtom::UpTo)
      return isAtMost(a.bound, placeA.scale, most, placeB.scale);
    if (auto segment = dyn_cast_or_null<SegmentOp>(placeA.op); segment && a.kind == MaskAtom::Place) {
      SizeBound farthest = boundOf(segment, 0);
      --farthest.constant;
      if (isAtMost(farthest, placeA.scale, most, placeB.scale))
        return true;
    }
  }
  return impliesHere(a, b);
}

/// Of two atoms of one place, or of two places in one.
bool MaskAtoms::impliesHere(const MaskAtom &a, const MaskAtom &b) const {
  if (a.kind == MaskAtom::Place && b.kind == MaskAtom::Place) {
    const MaskPlace &placeA = places[a.place], &placeB = places[b.place];
    auto segmentA = dyn_cast<SegmentOp>(placeA.op), segmentB = dyn_cast<SegmentOp>(placeB.op);
    if (placeA.parent != placeB.parent || bool(segmentA) != bool(segmentB))
      return false;
    if (!segmentA)
      return isFiner(residueOf(placeA.op), residueOf(placeB.op));
    const SizeBound lengthA = boundOf(segmentA, 0), lengthB = boundOf(segmentB, 0);
    return lengthA.isLiteral() && lengthB.isLiteral() && lengthB.constant % lengthA.constant == 0;
  }
  if (a.kind == MaskAtom::Place && b.kind == MaskAtom::Residue)
    return places[a.place].parent == b.place && isa<DilateOp>(places[a.place].op) &&
           isFiner(residueOf(places[a.place].op), residueOf(b.op));
  if (a.place != b.place || (a.axis != b.axis))
    return false;
  if (a.kind == MaskAtom::Residue && b.kind == MaskAtom::Residue)
    return isFiner(residueOf(a.op), residueOf(b.op));
  const bool isNested =
      a.kind == b.kind && (a.kind == MaskAtom::Prefix || a.kind == MaskAtom::First || a.kind == MaskAtom::Last);
  return (isNested || (a.kind == MaskAtom::First && b.kind == MaskAtom::Prefix)) && isAtMost(a.bound, 1, b.bound, 1);
}

/// No pair is in both.
bool MaskAtoms::excludes(const MaskAtom &a, const MaskAtom &b) const {
  const MaskPlace &placeA = places[a.place], &placeB = places[b.place];
  if (a.kind == MaskAtom::Residue && b.kind == MaskAtom::Residue)
    return a.place == b.place && a.axis == b.axis && neverMeet(residueOf(a.op), residueOf(b.op));
  if (a.kind != MaskAtom::Place || a.place == b.place)
    return false;
  if (auto segment = dyn_cast<SegmentOp>(placeA.op); segment && b.kind == MaskAtom::UpTo)
    return placeA.base == placeB.base &&
           isAtMost(b.bound, placeB.scale, boundOf(segment, 0).negatedLess(0), placeA.scale);
  return b.kind == MaskAtom::Place && placeA.parent == placeB.parent && isa<DilateOp>(placeA.op) &&
         isa<DilateOp>(placeB.op) && neverMeet(residueOf(placeA.op), residueOf(placeB.op));
}

MaskAtoms::Set MaskAtoms::guardOf(unsigned place, SetFunctions &functions) const {
  while (place != 0 && !places[place].isGuarded)
    place = places[place].parent;
  for (unsigned v = 0; place != 0 && v < atoms.size(); ++v)
    if (atoms[v].kind == MaskAtom::Place && atoms[v].place == place)
      return functions.variable(v);
  return SetFunctions::kAll;
}

MaskAtoms::Set MaskAtoms::facts(SetFunctions &functions) const {
  Set all = SetFunctions::kAll;
  auto never = [&](Set set) { all = functions.both(all, functions.complement(set)); };
  for (unsigned a = 0; a < atoms.size(); ++a) {
    const Set here = functions.variable(a);
    const unsigned around = atoms[a].kind == MaskAtom::Place ? places[atoms[a].place].parent : atoms[a].place;
    never(functions.both(here, functions.complement(guardOf(around, functions))));
    for (unsigned b = 0; b < atoms.size(); ++b) {
      const Set there = functions.variable(b);
      if (a != b && implies(atoms[a], atoms[b]))
        never(functions.both(functions.both(here, guardOf(atoms[b].place, functions)), functions.complement(there)));
      if (a != b && excludes(atoms[a], atoms[b]))
        never(functions.both(here, there));
    }
  }
  return all;
}

} // namespace heddle::attn
