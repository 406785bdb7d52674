//===- RandomLattices.cpp - random unions over several lattices ------------------===//
#include "support/RandomPattern.h"

namespace heddle::test {

namespace {

/// Terms of unions over several lattices.
class LatticeTerms {
public:
  explicit LatticeTerms(std::mt19937 &random) : random(random) {}

  /// On a lattice, or on none, in up to two segments.
  MaskNode term() {
    MaskNode node = below(4) == 0 ? plain() : onLattice();
    static const int64_t depths[] = {0, 1, 1, 1, 1, 2};
    for (int64_t depth = depths[below(6)]; depth > 0; --depth)
      node = around(MaskNode::Segment, 1 + below(below(2) ? 4 : 40), std::move(node));
    return node;
  }

private:
  int64_t below(int64_t bound) { return int64_t(random() % uint32_t(bound)); }

  static MaskNode around(MaskNode::Kind kind, int64_t a, MaskNode operand) {
    MaskNode node;
    node.kind = kind;
    node.a = a;
    node.operands.push_back(std::move(operand));
    return node;
  }

  MaskNode plain() {
    static const MaskNode::Kind kinds[] = {MaskNode::Rows, MaskNode::Cols, MaskNode::Box, MaskNode::Window};
    MaskNode node;
    node.kind = kinds[below(4)];
    node.a = below(3);
    node.b = node.kind == MaskNode::Box ? node.a + below(4) : below(3);
    node.c = below(3);
    node.d = node.c + below(4);
    return node;
  }

  MaskNode onLattice() {
    static const int64_t rates[] = {2, 2, 3, 3, 5, 4, 7};
    const int64_t rate = rates[below(7)];
    MaskNode inner;
    inner.kind = below(3) ? MaskNode::Full : MaskNode::Causal;
    const int64_t kind = below(3);
    MaskNode node = around(kind == 0   ? MaskNode::StrideK
                           : kind == 1 ? MaskNode::StrideQ
                                       : MaskNode::Dilate,
                           rate, std::move(inner));
    if (kind < 2)
      node.operands.clear();
    node.b = below(rate);
    if (node.kind == MaskNode::Dilate && below(4) == 0)
      node.rule = below(2) ? "every" : "modulo";
    return node;
  }

  std::mt19937 &random;
};

} // namespace

RandomCase latticesCase(std::mt19937 &random) {
  RandomCase made = randomCase(random, 1);
  LatticeTerms terms(random);
  made.isUnion = true;
  made.branches.clear();
  for (int64_t count = 2 + int64_t(random() % 3); count > 0; --count) {
    MaskNode term = terms.term();
    if (random() % 3 == 0) {
      MaskNode either;
      either.kind = MaskNode::Or;
      either.operands = {std::move(term), terms.term()};
      term = std::move(either);
    }
    made.branches.push_back(std::move(term));
  }
  return made;
}

} // namespace heddle::test
