//===- Spellings.cpp - laws of sets and of sizes --------------------------------===//
#include "support/Spellings.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace heddle::test {

namespace {

using Node = MaskNode;
using Result = std::optional<Node>;
using Law = Result (*)(std::mt19937 &, const Node &);

Node made(Node::Kind kind, std::vector<Node> operands) {
  Node node;
  node.kind = kind;
  node.operands = std::move(operands);
  return node;
}

Node sized(Node::Kind kind, int64_t a, int64_t b = 0) {
  Node node;
  node.kind = kind;
  node.a = a;
  node.b = b;
  return node;
}

Node both(Node a, Node b) { return made(Node::And, {std::move(a), std::move(b)}); }
Node either(Node a, Node b) { return made(Node::Or, {std::move(a), std::move(b)}); }
Node inverse(Node a) { return made(Node::Not, {std::move(a)}); }

Node anyLeaf(std::mt19937 &random) {
  const int64_t a = 1 + random() % 9, b = random() % 9;
  switch (random() % 5) {
  case 0:
    return sized(Node::Window, a, b);
  case 1:
    return sized(Node::Cols, a);
  case 2:
    return sized(Node::StrideK, 2 + a % 3, b % 2);
  case 3:
    return sized(Node::Rows, a);
  default:
    return sized(Node::Causal, 0);
  }
}

bool isSet(const Node &node) { return node.kind == Node::And || node.kind == Node::Or; }
bool isPullback(const Node &node) {
  return node.kind == Node::Segment || node.kind == Node::Blocks || node.kind == Node::Dilate;
}
Node::Kind dualOf(Node::Kind kind) { return kind == Node::And ? Node::Or : Node::And; }

Result swapOperands(std::mt19937 &random, const Node &node) {
  if (!isSet(node))
    return {};
  Node result = node;
  std::shuffle(result.operands.begin(), result.operands.end(), random);
  return result;
}

Result regroup(std::mt19937 &, const Node &node) {
  if (!isSet(node) || node.operands.size() < 3)
    return {};
  Node last = node.operands.back(), rest = node;
  rest.operands.pop_back();
  return made(node.kind, {rest, last});
}

Result repeat(std::mt19937 &random, const Node &node) {
  return made(random() % 2 ? Node::And : Node::Or, {node, node});
}

Result absorb(std::mt19937 &random, const Node &node) {
  const Node::Kind kind = random() % 2 ? Node::And : Node::Or;
  return made(kind, {node, made(dualOf(kind), {anyLeaf(random), node})});
}

Result distribute(std::mt19937 &, const Node &node) {
  if (!isSet(node))
    return {};
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (node.operands[i].kind != dualOf(node.kind))
      continue;
    Node result = made(dualOf(node.kind), {});
    for (const Node &operand : node.operands[i].operands) {
      Node term = node;
      term.operands[i] = operand;
      result.operands.push_back(term);
    }
    return result;
  }
  return {};
}

Result deMorgan(std::mt19937 &, const Node &node) {
  if (!isSet(node))
    return {};
  Node result = made(dualOf(node.kind), {});
  for (const Node &operand : node.operands)
    result.operands.push_back(inverse(operand));
  return inverse(result);
}

Result negateTwice(std::mt19937 &, const Node &node) { return inverse(inverse(node)); }

Result meetEverything(std::mt19937 &random, const Node &node) {
  return random() % 2 ? both(node, sized(Node::Full, 0)) : either(sized(Node::Box, 0), node);
}

/// A or not A is everything, A and not A nothing.
Result excludedMiddle(std::mt19937 &random, const Node &node) {
  const Node any = anyLeaf(random);
  return random() % 2 ? both(either(any, inverse(any)), node) : either(node, both(inverse(any), any));
}

Result divideCases(std::mt19937 &random, const Node &node) {
  const Node any = anyLeaf(random);
  return either(both(node, any), both(inverse(any), node));
}

/// A band is the meet of two wider ones; the sizes of wider ones are literals.
Result widenBands(std::mt19937 &random, const Node &node) {
  if (node.kind == Node::Causal)
    return both(sized(Node::Window, 2147483647, 0), sized(Node::Prefix, 0));
  if (node.kind != Node::Window || node.isRuntime)
    return {};
  Node left = node, right = node;
  left.b += random() % 5;
  right.a += random() % 5;
  if (node.b == 0 && random() % 2)
    right = sized(Node::Causal, 0);
  return both(right, left);
}

/// Bands without a middle.
Result cutBands(std::mt19937 &, const Node &node) {
  if (node.kind != Node::Window || node.isRuntime || node.a == 0)
    return {};
  const Node own = sized(Node::Window, 0, 0);
  return either(both(node, inverse(own)), both(own, node));
}

Result splitEdges(std::mt19937 &, const Node &node) {
  if ((node.kind != Node::Rows && node.kind != Node::Cols) || node.isRuntime)
    return {};
  return either(sized(node.kind, 0, node.b), sized(node.kind, node.a, 0));
}

Result boxOfEdges(std::mt19937 &, const Node &node) {
  if (node.kind != Node::Box || node.isRuntime)
    return {};
  return made(Node::And, {sized(Node::Cols, node.d), inverse(sized(Node::Rows, node.a)), sized(Node::Rows, node.b),
                          inverse(sized(Node::Cols, node.c))});
}

Result pullApart(std::mt19937 &, const Node &node) {
  if (!isPullback(node) || !isSet(node.operands[0]))
    return {};
  Node result = made(node.operands[0].kind, {});
  for (const Node &operand : node.operands[0].operands) {
    result.operands.push_back(node);
    result.operands.back().operands = {operand};
  }
  return result;
}

Result complementInside(std::mt19937 &, const Node &node) {
  if (!isPullback(node) || node.operands[0].kind != Node::Not)
    return {};
  Node whole = node, kept = node;
  whole.operands = {sized(Node::Full, 0)};
  kept.operands = node.operands[0].operands;
  return both(inverse(kept), whole);
}

/// Distances within a segment are those around it, within a dilation a part of them.
Result bandOutside(std::mt19937 &, const Node &node) {
  if (node.kind != Node::Segment && node.kind != Node::Dilate)
    return {};
  const Node &operand = node.operands[0];
  const bool isBand = operand.kind == Node::Causal || operand.kind == Node::Window;
  if (!isBand || (node.kind == Node::Dilate && operand.isRuntime))
    return {};
  Node whole = node, band = operand;
  whole.operands = {sized(Node::Full, 0)};
  if (node.kind == Node::Dilate) {
    band.a *= node.a;
    band.b *= node.a;
  }
  return both(band, whole);
}

Result dilateByOne(std::mt19937 &, const Node &node) {
  Node result = sized(Node::Dilate, 1);
  result.operands = {node};
  return result;
}

/// What masks of every group have in common is inside or outside.
Result setInHeads(std::mt19937 &, const Node &node) {
  if (!isSet(node))
    return {};
  auto heads = std::find_if(node.operands.begin(), node.operands.end(),
                            [](const Node &operand) { return operand.kind == Node::Heads; });
  if (heads == node.operands.end())
    return {};
  const size_t place = heads - node.operands.begin();
  Node result = made(Node::Heads, {});
  for (const Node &operand : heads->operands) {
    result.operands.push_back(node);
    result.operands.back().operands[place] = operand;
  }
  return result;
}

Result pullHeads(std::mt19937 &, const Node &node) {
  if ((!isPullback(node) && node.kind != Node::Not) || node.operands[0].kind != Node::Heads || node.rule == "group")
    return {};
  Node result = made(Node::Heads, {});
  for (const Node &operand : node.operands[0].operands) {
    result.operands.push_back(node);
    result.operands.back().operands = {operand};
  }
  return result;
}

const Law kLaws[] = {swapOperands,   regroup,          repeat,      absorb,      distribute, deMorgan,   negateTwice,
                     meetEverything, excludedMiddle,   divideCases, widenBands,  cutBands,   splitEdges, boxOfEdges,
                     pullApart,      complementInside, bandOutside, dilateByOne, setInHeads, pullHeads};

void collect(Node &node, std::vector<Node *> &nodes) {
  nodes.push_back(&node);
  for (Node &operand : node.operands)
    collect(operand, nodes);
}

bool usesGroups(const Node &node) {
  return node.rule == "group" || std::any_of(node.operands.begin(), node.operands.end(), usesGroups);
}

} // namespace

size_t spellingLaws() { return std::size(kLaws); }

MaskNode respelled(std::mt19937 &random, MaskNode mask, int steps, std::vector<int64_t> &applied) {
  applied.resize(spellingLaws());
  for (int step = 0, tries = 0; step < steps && tries < 20 * steps; ++tries) {
    std::vector<Node *> nodes;
    collect(mask, nodes);
    if (nodes.size() > 60)
      break;
    const size_t law = random() % spellingLaws();
    Node &node = *nodes[random() % nodes.size()];
    const bool movesHeads = kLaws[law] == setInHeads || kLaws[law] == pullHeads;
    if (movesHeads && usesGroups(node)) // a rule by groups is another one in other heads
      continue;
    if (Result result = kLaws[law](random, node)) {
      node = std::move(*result);
      ++applied[law];
      ++step;
    }
  }
  return mask;
}

} // namespace heddle::test
