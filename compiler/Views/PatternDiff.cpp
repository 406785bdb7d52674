//===- PatternDiff.cpp - counting where two patterns disagree -----------------===//
#include "compiler/Views/PatternDiff.h"
#include "compiler/Views/KeptRows.h"
#include "runtime/Core/CountText.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

namespace heddle::views {

using namespace heddle::attn;

namespace {

/// Both patterns in one, each as a single mask, so that their pieces may meet.
class JointPattern {
public:
  JointPattern(const DiffSide &first, const DiffSide &second) : sizes(first.sizes) {
    sizes.parameters.insert(sizes.parameters.end(), second.sizes.parameters.begin(), second.sizes.parameters.end());
    std::string arguments;
    for (size_t i = 0; i < sizes.parameters.size(); ++i)
      arguments += (i ? ", %p" : "%p") + std::to_string(i) + ": i32";
    const std::string text =
        "attn.pattern @joint(" + arguments + ") {\n  %m = attn.full\n  attn.softmax union(%m)\n}\n";
    file = PatternFile::parse(text, "joint").take();
    pattern = file->pattern();
    masks[0] = take(first.file, 0);
    masks[1] = take(second.file, first.sizes.parameters.size());
  }

  enum Which { First, Second, Either, Both };
  std::optional<WideInt> count(Which which) {
    mlir::OpBuilder builder(pattern.getSoftmax());
    mlir::Value mask = masks[which == Second];
    mlir::Type type = mask.getType();
    if (which == Either)
      mask = OrOp::create(builder, pattern.getLoc(), type, mlir::ValueRange(masks));
    if (which == Both)
      mask = AndOp::create(builder, pattern.getLoc(), type, mlir::ValueRange(masks));
    pattern.getSoftmax().getBranchesMutable().assign(mask);
    return countPairs(analyze(pattern), sizes);
  }

private:
  /// Clones a pattern's masks; its sizes are the joint ones from `offset` on.
  mlir::Value take(const PatternFile &file, size_t offset) {
    auto source = mlir::parseSourceString<mlir::ModuleOp>(file.text(), pattern.getContext());
    PatternOp from = *source->getOps<PatternOp>().begin();
    mlir::IRMapping mapping;
    for (unsigned i = 0; i < from.getNumArguments(); ++i)
      mapping.map(from.getArgument(i), pattern.getArgument(offset + i));
    mlir::OpBuilder builder(pattern.getSoftmax());
    for (mlir::Operation &op : from.getBody().front().without_terminator())
      if (llvm::isa<MaskOpInterface>(op))
        builder.clone(op, mapping);
    llvm::SmallVector<mlir::Value> branches;
    for (mlir::Value branch : from.getSoftmax().getBranches())
      branches.push_back(mapping.lookup(branch));
    return OrOp::create(builder, pattern.getLoc(), branches.front().getType(), branches);
  }

  std::unique_ptr<PatternFile> file;
  PatternOp pattern;
  ProblemSizes sizes;
  std::array<mlir::Value, 2> masks;
};

bool startAlike(const DiffSide &first, const DiffSide &second) {
  return first.sizes.qOrigin == second.sizes.qOrigin && first.sizes.kOrigin == second.sizes.kOrigin;
}

bool isUnion(const PatternFile &file) {
  PatternOp pattern = file.pattern();
  return pattern.getSoftmax().getCombine() == Combine::set_union;
}

bool hasSizesOnly(const PatternFile &file) {
  PatternOp pattern = file.pattern();
  return llvm::all_of(pattern.getArgumentTypes(), [](mlir::Type type) { return type.isInteger(32); });
}

std::optional<DiffCounts> countInClosedForm(const DiffSide &first, const DiffSide &second) {
  if (!startAlike(first, second) || !hasSizesOnly(first.file) || !hasSizesOnly(second.file))
    return std::nullopt;
  JointPattern joint(first, second);
  std::optional<WideInt> a = joint.count(JointPattern::First), b = joint.count(JointPattern::Second);
  if (!a || !b)
    return std::nullopt;
  std::optional<WideInt> both = joint.count(JointPattern::Both);
  if (!both)
    if (std::optional<WideInt> either = joint.count(JointPattern::Either))
      both = *a + *b - *either;
  if (!both)
    return std::nullopt;
  DiffCounts counts{*both, *a - *both, *b - *both, std::nullopt, true};
  if (isUnion(first.file) && isUnion(second.file))
    counts.unequal = 0;
  return counts;
}

Result<DiffCounts> countPairByPair(const DiffSide &first, const DiffSide &second) {
  HEDDLE_ASSIGN(KeptRows a, KeptRows::create(first.file, first.sizes, first.operands));
  HEDDLE_ASSIGN(KeptRows b, KeptRows::create(second.file, second.sizes, second.operands));
  DiffCounts counts;
  WideInt unequal = 0;
  std::vector<uint16_t> left, right;
  for (int64_t head = 0; head < first.sizes.heads; ++head)
    for (int64_t row = 0; row < first.sizes.seqlenQ; ++row) {
      a.read(head, row, left);
      b.read(head, row, right);
      for (size_t j = 0; j < left.size(); ++j) {
        counts.both += left[j] && right[j];
        counts.onlyFirst += left[j] && !right[j];
        counts.onlySecond += !left[j] && right[j];
        unequal += left[j] && right[j] && left[j] != right[j];
      }
    }
  counts.unequal = unequal;
  return counts;
}

} // namespace

Result<DiffCounts> countDifference(const DiffSide &first, const DiffSide &second) {
  // Multiplicities are only counted pair by pair, so that is taken where it is cheap.
  const WideInt pairs = WideInt(first.sizes.heads) * first.sizes.seqlenQ * first.sizes.seqlenK;
  const bool needsCopies = !isUnion(first.file) || !isUnion(second.file);
  constexpr int64_t kCheapPairs = int64_t(1) << 24;
  if (!needsCopies || pairs > kCheapPairs)
    if (std::optional<DiffCounts> counts = countInClosedForm(first, second))
      return *counts;
  if (pairs > kMostComparedPairs)
    return Status::unsupported("the two patterns together have no closed form, and " + counted(pairs, "pair") +
                               " are more than the " + grouped(kMostComparedPairs) +
                               " that are compared one by one; take a smaller --seqlen or fewer --heads");
  return countPairByPair(first, second);
}

} // namespace heddle::views
