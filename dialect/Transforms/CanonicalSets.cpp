// Writes masks anew from the set that they are: a function of atoms, what is known of pairs of these taken into
// account, then products that cover it, then their text. The choice between groups of heads comes first.
#include "dialect/IR/ScoreDocuments.h"
#include "dialect/Transforms/MaskPrinter.h"
#include "dialect/Transforms/Passes.h"
#include "dialect/Transforms/UnionTerms.h"

#include <set>

using namespace mlir;

namespace heddle::attn {
#define GEN_PASS_DEF_ATTNCANONICALSETS
#include "dialect/Transforms/Passes.h.inc"

namespace {

constexpr size_t kMaxChoices = 64;

void collectHeads(Value mask, std::set<unsigned> &counts, llvm::DenseSet<Operation *> &seen) {
  auto op = mask.getDefiningOp<MaskOpInterface>();
  if (!op || !seen.insert(op).second)
    return;
  if (op.form() == MaskForm::ByHeads)
    counts.insert(op->getNumOperands());
  for (Value operand : op->getOperands())
    collectHeads(operand, counts, seen);
}

/// Every operand of heads of each count, the last count the fastest.
std::vector<HeadChoice> choicesOf(const std::set<unsigned> &counts) {
  std::vector<HeadChoice> choices = {{}};
  for (unsigned count : counts) {
    std::vector<HeadChoice> longer;
    for (const HeadChoice &choice : choices)
      for (unsigned operand = 0; operand < count; ++operand) {
        longer.push_back(choice);
        longer.back()[count] = operand;
      }
    choices = std::move(longer);
    if (choices.size() > kMaxChoices)
      return {};
  }
  return choices;
}

/// Products whose union is the set, or what it leaves out.
struct MaskCover {
  std::vector<Cube> cubes;
  bool isInverse = false;
  bool operator==(const MaskCover &other) const { return cubes == other.cubes && isInverse == other.isInverse; }
  bool operator!=(const MaskCover &other) const { return !(*this == other); }
};

/// A meet of unions multiplies out to many products, and its complement to few.
std::optional<MaskCover> shorterCover(SetFunctions &functions, SetFunctions::Set kept, SetFunctions::Set dropped) {
  constexpr size_t kFew = 16, kGain = 4;
  std::optional<std::vector<Cube>> own = functions.cover(kept, functions.complement(dropped));
  if (own && own->size() <= kFew)
    return MaskCover{std::move(*own)};
  std::optional<std::vector<Cube>> others = functions.cover(dropped, functions.complement(kept));
  if (others && (!own || kGain * others->size() <= own->size()))
    return MaskCover{std::move(*others), true};
  return own ? std::optional(MaskCover{std::move(*own)}) : std::nullopt;
}

/// Drops atoms that make no difference, the last first.
std::optional<MaskCover> coverOf(SetFunctions &functions, SetFunctions::Set set, SetFunctions::Set facts,
                                 unsigned atoms) {
  SetFunctions::Set kept = functions.both(set, facts), dropped = functions.both(functions.complement(set), facts);
  for (unsigned v = atoms; v-- > 0;) {
    const SetFunctions::Set keptAnyway = functions.without(kept, v), droppedAnyway = functions.without(dropped, v);
    if (functions.both(keptAnyway, droppedAnyway) != SetFunctions::kNone)
      continue;
    kept = keptAnyway;
    dropped = droppedAnyway;
  }
  return shorterCover(functions, kept, dropped);
}

/// The mask of each choice, one attn.heads in the other.
Value chosenMask(MaskPrinter &printer, ArrayRef<Value> masks, const std::set<unsigned> &counts) {
  SmallVector<Value> inner(masks);
  for (unsigned count : llvm::reverse(counts)) {
    SmallVector<Value> outer;
    for (size_t first = 0; first < inner.size(); first += count)
      outer.push_back(printer.heads(ArrayRef(inner).slice(first, count)));
    inner = outer;
  }
  return inner[0];
}

struct AttnCanonicalSetsPass : impl::AttnCanonicalSetsBase<AttnCanonicalSetsPass> {
  void runOnOperation() override { canonicalizeSets(getOperation()); }
};

} // namespace

Value canonicalMask(PatternOp pattern, ArrayRef<Value> masks, OpBuilder &builder) {
  std::set<unsigned> counts;
  llvm::DenseSet<Operation *> seen;
  for (Value mask : masks)
    collectHeads(mask, counts, seen);
  const std::vector<HeadChoice> choices = choicesOf(counts);
  MaskAtoms atoms(pattern);
  for (const HeadChoice &choice : choices)
    for (Value mask : masks)
      atoms.collect(mask, choice);
  if (choices.empty() || !atoms.number())
    return {};
  SetFunctions functions;
  const SetFunctions::Set facts = atoms.facts(functions);
  std::vector<MaskCover> covers;
  for (const HeadChoice &choice : choices) {
    SetFunctions::Set set = SetFunctions::kNone;
    for (Value mask : masks)
      set = functions.either(set, atoms.read(mask, choice, functions));
    std::optional<MaskCover> cover = coverOf(functions, set, facts, atoms.all().size());
    if (!cover || functions.isTooLarge())
      return {};
    covers.push_back(std::move(*cover));
  }
  MaskPrinter printer(atoms, builder, masks[0].getLoc());
  auto print = [&](const MaskCover &cover) {
    const Value mask = printer.print(cover.cubes);
    return cover.isInverse ? printer.inverse(mask) : mask;
  };
  if (llvm::all_equal(covers))
    return print(covers[0]);
  SmallVector<Value> texts;
  for (const MaskCover &cover : covers)
    texts.push_back(print(cover));
  return chosenMask(printer, texts, counts);
}

void canonicalizeSets(PatternOp pattern) {
  nameScoreDocuments(pattern); // before masks that say it may go
  SoftmaxOp softmax = pattern.getSoftmax();
  OpBuilder builder(softmax);
  SmallVector<Value> branches(softmax.getBranches());
  if (softmax.getCombine() == Combine::set_union) {
    if (Value mask = canonicalMask(pattern, branches, builder))
      branches = {mask};
  } else {
    for (Value &branch : branches)
      if (Value mask = canonicalMask(pattern, branch, builder))
        branch = mask;
  }
  softmax.getBranchesMutable().assign(branches);
  dropUnused(pattern);
}

OwningOpRef<ModuleOp> canonicalPattern(PatternOp pattern) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(pattern.getLoc());
  auto copy = cast<PatternOp>(pattern->clone());
  module->push_back(copy);
  canonicalizeSets(copy);
  return module;
}

} // namespace heddle::attn
