//===- foreign_masks_test.cpp - masks of a dialect that passes have not seen ------===//
// A pullback of another dialect keeps its operand through everything that writes masks anew, and an op that does not
// say how it is made of its operands is refused when its dialect is loaded.
//===----------------------------------------------------------------------===//
#include "dialect/Geometry/Counts.h"
#include "dialect/IR/Attn.h"
#include "dialect/Transforms/Passes.h"
#include "dialect/Transforms/UnionTerms.h"
#include "process_fixture.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <doctest/doctest.h>

namespace attn = heddle::attn;
using mlir::OpTrait::OneTypedResult;

namespace foreign {

template <class Op, template <class> class... More>
using MaskBase =
    mlir::Op<Op, mlir::OpTrait::ZeroRegions, mlir::OpTrait::OneResult, OneTypedResult<attn::MaskType>::Impl,
             mlir::OpTrait::ZeroSuccessors, mlir::OpTrait::OneOperand, mlir::ConditionallySpeculatable::Trait,
             mlir::OpTrait::AlwaysSpeculatableImplTrait, mlir::MemoryEffectOpInterface::Trait,
             attn::MaskOpInterface::Trait, More...>;

/// Keeps (q, k) when its operand keeps (k, q).
template <class Op, template <class> class... More> class Mirrored : public MaskBase<Op, More...> {
public:
  using MaskBase<Op, More...>::MaskBase;
  static mlir::ArrayRef<mlir::StringRef> getAttributeNames() { return {}; }
  void getEffects(mlir::SmallVectorImpl<mlir::SideEffects::EffectInstance<mlir::MemoryEffects::Effect>> &) {}

  void pieces(const attn::Frame &frame, attn::PieceList &out) { describe(&attn::MaskOpInterface::pieces, frame, out); }
  void complement(const attn::Frame &frame, attn::PieceList &out) {
    describe(&attn::MaskOpInterface::complement, frame, out);
  }
  mlir::Value buildPredicate(attn::PredicateFrame &frame) {
    attn::PredicateFrame inner = frame;
    std::swap(inner.q, inner.k);
    std::swap(inner.extentQ, inner.extentK);
    return mirrored().buildPredicate(inner);
  }

private:
  attn::MaskOpInterface mirrored() { return (*this)->getOperand(0).template getDefiningOp<attn::MaskOpInterface>(); }
  void describe(void (attn::MaskOpInterface::*describe)(const attn::Frame &, attn::PieceList &),
                const attn::Frame &frame, attn::PieceList &out) {
    attn::Frame inner = frame;
    inner.region = frame.region.transposed();
    std::swap(inner.baseQ, inner.baseK);
    std::swap(inner.extentQ, inner.extentK);
    attn::PieceList pieces;
    (mirrored().*describe)(inner, pieces);
    for (const attn::Piece &piece : pieces)
      out.push_back(piece.transposed());
  }
};

struct MirrorOp : Mirrored<MirrorOp, attn::PullbackOpInterface::Trait> {
  using Mirrored::Mirrored;
  static mlir::StringRef getOperationName() { return "foreign.mirror"; }
  static attn::MaskForm form() { return attn::MaskForm::Pullback; }
  attn::PullbackPlace place() {
    attn::PullbackPlace place;
    place.isGuarded = false;
    return place;
  }
};

/// Says that it is made of no mask, and is.
struct FalseLeafOp : Mirrored<FalseLeafOp> {
  using Mirrored::Mirrored;
  static mlir::StringRef getOperationName() { return "foreign.false_leaf"; }
  static attn::MaskForm form() { return attn::MaskForm::Leaf; }
};

/// Does not say how it is made.
struct SilentOp : Mirrored<SilentOp> {
  using Mirrored::Mirrored;
  static mlir::StringRef getOperationName() { return "foreign.silent"; }
};

/// Says that it is a pullback, and not which coordinates it has.
struct NowhereOp : Mirrored<NowhereOp> {
  using Mirrored::Mirrored;
  static mlir::StringRef getOperationName() { return "foreign.nowhere"; }
  static attn::MaskForm form() { return attn::MaskForm::Pullback; }
};

template <class... Ops> class ForeignDialect : public mlir::Dialect {
public:
  explicit ForeignDialect(mlir::MLIRContext *context)
      : mlir::Dialect(getDialectNamespace(), context, mlir::TypeID::get<ForeignDialect<Ops...>>()) {
    addOperations<Ops...>();
  }
  static mlir::StringRef getDialectNamespace() { return "foreign"; }
};

} // namespace foreign

namespace {

using Answering = foreign::ForeignDialect<foreign::MirrorOp, foreign::FalseLeafOp>;

struct Parsed {
  explicit Parsed(const std::string &ops) {
    context.loadDialect<attn::AttnDialect, Answering>();
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
      said += diagnostic.str() + "\n";
      return mlir::success();
    });
    module = mlir::parseSourceString<mlir::ModuleOp>("attn.pattern @p() { " + ops + " }", &context);
  }

  attn::PatternOp pattern() { return *module->getOps<attn::PatternOp>().begin(); }
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string said;
};

std::string mirrorOf(const std::string &result, const std::string &mask) {
  return result + " = \"foreign.mirror\"(" + mask + ") : (!attn.mask) -> !attn.mask ";
}

/// The text after attn-canonical-sets.
std::string canonicalText(const std::string &ops) {
  Parsed parsed(ops);
  REQUIRE(parsed.module);
  attn::canonicalizeSets(parsed.pattern());
  REQUIRE(mlir::succeeded(mlir::verify(*parsed.module)));
  std::string text;
  llvm::raw_string_ostream stream(text);
  parsed.pattern().print(stream);
  return text;
}

int64_t pairsOf(attn::PatternOp pattern) {
  attn::ProblemSizes sizes;
  sizes.seqlenQ = sizes.seqlenK = 16;
  const std::optional<attn::WideInt> pairs = attn::countPairs(attn::analyze(pattern), sizes);
  REQUIRE(pairs);
  return int64_t(*pairs);
}

const std::string kRowsAndColumns = "%r = attn.rows [3, 0] %c = attn.cols [5, 0] ";
const std::string kTwoMirrors = kRowsAndColumns + mirrorOf("%x", "%r") + mirrorOf("%y", "%c");

/// What a process says that loads the dialects; empty if it lives.
template <class... Dialects> std::string saidOnLoading() {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = heddle::test::startChild([&] {
    dup2(ends[1], STDERR_FILENO);
    mlir::MLIRContext context;
    context.loadDialect<Dialects...>();
    return 0;
  });
  close(ends[1]);
  std::string said;
  char letters[256];
  for (ssize_t count; (count = read(ends[0], letters, sizeof(letters))) > 0;)
    said.append(letters, size_t(count));
  close(ends[0]);
  CHECK((heddle::test::waitFor(child) == 0) == said.empty());
  return said;
}

} // namespace

TEST_CASE("or of two pullbacks that only another dialect knows keeps both operands") {
  for (const std::string end : {"%m = attn.or %x, %y attn.softmax union(%m)", "attn.softmax union(%x, %y)"}) {
    CAPTURE(end);
    Parsed parsed(kTwoMirrors + end);
    REQUIRE(parsed.module);
    const int64_t pairs = 3 * 16 + 5 * 16 - 3 * 5;
    CHECK(pairsOf(parsed.pattern()) == pairs);
    attn::canonicalizeSets(parsed.pattern());
    CHECK(pairsOf(parsed.pattern()) == pairs);
  }
  const std::string text = canonicalText(kTwoMirrors + "%m = attn.or %x, %y attn.softmax union(%m)");
  CAPTURE(text);
  CHECK(text.find("attn.rows [3, 0]") != std::string::npos);
  CHECK(text.find("attn.cols [5, 0]") != std::string::npos);
}

TEST_CASE("pullbacks of another dialect differ by their operands") {
  const std::string end = " attn.softmax union(%x)";
  const std::string rows = canonicalText("%m = attn.rows [3, 0] " + mirrorOf("%x", "%m") + end);
  CHECK(rows != canonicalText("%m = attn.cols [3, 0] " + mirrorOf("%x", "%m") + end));
  CHECK(rows != canonicalText("%x = attn.rows [3, 0]" + end));
  CHECK(rows ==
        canonicalText("%f = attn.full %r = attn.rows [3, 0] %m = attn.and %f, %r " + mirrorOf("%x", "%m") + end));
}

TEST_CASE("a union below a pullback of another dialect is taken apart") {
  Parsed parsed(kRowsAndColumns + "%m = attn.or %r, %c " + mirrorOf("%x", "%m") + "attn.softmax union(%x)");
  REQUIRE(parsed.module);
  attn::SoftmaxOp softmax = parsed.pattern().getSoftmax();
  mlir::OpBuilder builder(softmax);
  CHECK(attn::termsOf(softmax.getBranches()[0], builder).size() == 2);
}

TEST_CASE("a leaf that is made of a mask is an error at the op") {
  Parsed parsed("%c = attn.causal %x = \"foreign.false_leaf\"(%c) : (!attn.mask) -> !attn.mask attn.softmax union(%x)");
  CHECK(!parsed.module);
  CHECK(parsed.said.find("'foreign.false_leaf' op expected no mask among the operands of a leaf") != std::string::npos);
}

TEST_CASE("an op that does not say how it is made is refused when its dialect is loaded") {
  using Silent = foreign::ForeignDialect<foreign::MirrorOp, foreign::SilentOp>;
  using Nowhere = foreign::ForeignDialect<foreign::NowhereOp>;
  CHECK(saidOnLoading<attn::AttnDialect, Answering>() == "");
  const std::string silent = "op 'foreign.silent' does not say how it is made of its operands";
  CHECK(saidOnLoading<attn::AttnDialect, Silent>().find(silent) != std::string::npos);
  CHECK(saidOnLoading<Silent, attn::AttnDialect>().find(silent) != std::string::npos);
  CHECK(saidOnLoading<attn::AttnDialect, Nowhere>().find("op 'foreign.nowhere' does not say the coordinates") !=
        std::string::npos);
}
