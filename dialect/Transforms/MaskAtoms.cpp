#include "dialect/Transforms/MaskAtoms.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace heddle::attn {
namespace {

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
      stream << " " << SizeBound{0, 0, argument.getArgNumber()}.key();
  return key;
}

ResidueClass residuesOf(const MaskAtom &atom) { return cast<MaskOpInterface>(atom.op).residues(); }

} // namespace

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
    return literal({MaskAtom::UpTo, place, Axis::q, bound, nullptr, 0, {}});
  }

  Set pulledBack(PullbackOpInterface op, unsigned place) {
    if (op.place().isIdentity)
      return of(op->getOperand(0), place);
    const unsigned inner = atoms.placeOf(op, place);
    const Set set = of(op->getOperand(0), inner);
    if (!atoms.places[inner].own.isGuarded)
      return set;
    return functions.both(literal({MaskAtom::Place, inner, Axis::q, {}, nullptr, 0, {}}), set);
  }

  Set chosen(OperandRange masks, unsigned place) {
    const unsigned around = std::exchange(group, choice.at(masks.size()));
    const Set set = of(masks[group], place);
    group = around;
    return set;
  }

  Set joined(OperandRange masks, unsigned place, Set start, Set (SetFunctions::*join)(Set, Set)) {
    for (Value mask : masks)
      start = (functions.*join)(start, of(mask, place));
    return start;
  }

  Set leaf(Operation *op, unsigned place);

  Set of(Value mask, unsigned place) {
    auto op = cast<MaskOpInterface>(mask.getDefiningOp<MaskOpInterface>().inGroup(group));
    switch (op.form()) {
    case MaskForm::All:
      return joined(op->getOperands(), place, SetFunctions::kAll, &SetFunctions::both);
    case MaskForm::Any:
      return joined(op->getOperands(), place, SetFunctions::kNone, &SetFunctions::either);
    case MaskForm::Inverse:
      return functions.complement(of(op->getOperand(0), place));
    case MaskForm::ByHeads:
      return chosen(op->getOperands(), place);
    case MaskForm::Pullback:
      return pulledBack(cast<PullbackOpInterface>(op.getOperation()), place);
    case MaskForm::Leaf:
      return leaf(op, place);
    case MaskForm::Unanswered:
      break; // its dialect was refused
    }
    llvm_unreachable("a mask without a form");
  }
};

/// One leaf, asked for what it keeps.
class MaskAtoms::Leaf : public MaskTerms {
public:
  Leaf(Reading &reading, Operation *op, unsigned place) : reading(reading), op(op), place(place) {}

  Set all() override { return SetFunctions::kAll; }
  Set both(Set a, Set b) override { return reading.functions.both(a, b); }
  Set either(Set a, Set b) override { return reading.functions.either(a, b); }
  Set complement(Set a) override { return reading.functions.complement(a); }
  Set upTo(SizeBound bound) override { return reading.upTo(place, bound); }
  Set prefix(const SizeBound &length) override {
    if (length.isLiteral() && length.constant == 0)
      return upTo({});
    return reading.literal({MaskAtom::Prefix, place, Axis::k, length, nullptr, 0, {}});
  }
  Set first(Axis axis, const SizeBound &size) override { return edge(MaskAtom::First, axis, size); }
  Set last(Axis axis, const SizeBound &size) override { return edge(MaskAtom::Last, axis, size); }
  Set residue(Axis axis) override { return reading.literal({MaskAtom::Residue, place, axis, {}, op, 0, {}}); }
  Set unknown(unsigned rank) override { return reading.literal({MaskAtom::Other, place, Axis::q, {}, op, rank, {}}); }

private:
  Set edge(MaskAtom::Kind kind, Axis axis, const SizeBound &size) {
    if (size.isLiteral() && size.constant == 0)
      return SetFunctions::kNone;
    return reading.literal({kind, place, axis, size, nullptr, 0, {}});
  }

  Reading &reading;
  Operation *op;
  unsigned place;
};

MaskAtoms::Set MaskAtoms::Reading::leaf(Operation *op, unsigned place) {
  Leaf terms(*this, op, place);
  return cast<MaskOpInterface>(op).leafTerms(terms);
}

unsigned MaskAtoms::placeOf(PullbackOpInterface op, unsigned parent) {
  MaskPlace place{op,
                  op.place(),
                  cast<MaskOpInterface>(op.getOperation()).residues(),
                  parent,
                  0,
                  1,
                  places[parent].key + "/" + keyOf(op)};
  auto [known, isNew] = placeByKey.emplace(place.key, unsigned(places.size()));
  if (!isNew)
    return known->second;
  place.base = place.own.stride ? places[parent].base : unsigned(places.size());
  place.scale = place.own.stride ? places[parent].scale * *place.own.stride : 1;
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
    if (placeA.own.segment && a.kind == MaskAtom::Place) {
      SizeBound farthest = *placeA.own.segment;
      --farthest.constant;
      if (isAtMost(farthest, placeA.scale, most, placeB.scale))
        return true;
    }
  }
  return impliesHere(a, b);
}

/// The atoms are of one place, or of two places in one.
bool MaskAtoms::impliesHere(const MaskAtom &a, const MaskAtom &b) const {
  if (a.kind == MaskAtom::Place && b.kind == MaskAtom::Place) {
    const MaskPlace &placeA = places[a.place], &placeB = places[b.place];
    const auto &lengthA = placeA.own.segment, &lengthB = placeB.own.segment;
    if (placeA.parent != placeB.parent || bool(lengthA) != bool(lengthB))
      return false;
    if (!lengthA)
      return placeA.residues.isFiner(placeB.residues);
    return lengthA->isLiteral() && lengthB->isLiteral() && lengthB->constant % lengthA->constant == 0;
  }
  if (a.kind == MaskAtom::Place && b.kind == MaskAtom::Residue)
    return places[a.place].parent == b.place && places[a.place].residues.isFiner(residuesOf(b));
  if (a.place != b.place || (a.axis != b.axis))
    return false;
  if (a.kind == MaskAtom::Residue && b.kind == MaskAtom::Residue)
    return residuesOf(a).isFiner(residuesOf(b));
  const bool isNested =
      a.kind == b.kind && (a.kind == MaskAtom::Prefix || a.kind == MaskAtom::First || a.kind == MaskAtom::Last);
  return (isNested || (a.kind == MaskAtom::First && b.kind == MaskAtom::Prefix)) && isAtMost(a.bound, 1, b.bound, 1);
}

/// No pair is in both.
bool MaskAtoms::excludes(const MaskAtom &a, const MaskAtom &b) const {
  const MaskPlace &placeA = places[a.place], &placeB = places[b.place];
  if (a.kind == MaskAtom::Residue && b.kind == MaskAtom::Residue)
    return a.place == b.place && a.axis == b.axis && residuesOf(a).neverMeets(residuesOf(b));
  if (a.kind != MaskAtom::Place || a.place == b.place)
    return false;
  if (placeA.own.segment && b.kind == MaskAtom::UpTo)
    return placeA.base == placeB.base &&
           isAtMost(b.bound, placeB.scale, placeA.own.segment->negatedLess(0), placeA.scale);
  return b.kind == MaskAtom::Place && placeA.parent == placeB.parent && placeA.residues.neverMeets(placeB.residues);
}

MaskAtoms::Set MaskAtoms::guardOf(unsigned place, SetFunctions &functions) const {
  while (place != 0 && !places[place].own.isGuarded)
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
