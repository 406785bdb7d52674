//===- RandomPattern.cpp - random compositions of masks ----------------------===//
#include "support/RandomPattern.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace heddle::test {

namespace {

/// Writes ops in order of definition.
class Printer {
public:
  Printer(std::vector<int64_t> &parameters, bool sharesSizes) : parameters(parameters), sharesSizes(sharesSizes) {}

  std::string define(const MaskNode &node) {
    std::vector<std::string> names;
    for (const MaskNode &operand : node.operands)
      names.push_back(define(operand));
    std::string result = "%m" + std::to_string(count++);
    body += "  " + result + " = " + op(node, names) + "\n";
    return result;
  }

  std::string body;

private:
  std::string size(const MaskNode &node, int64_t value) {
    if (!node.isRuntime || (sharesSizes && value == 0))
      return std::to_string(value);
    auto known = sharesSizes ? std::find(parameters.begin(), parameters.end(), value) : parameters.end();
    const size_t index = known - parameters.begin();
    if (known == parameters.end())
      parameters.push_back(value);
    return "%p" + std::to_string(index);
  }

  static std::string joined(const std::vector<std::string> &names) {
    std::string text;
    for (const std::string &name : names)
      text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  static std::string offset(const MaskNode &node) {
    return " by " + std::to_string(node.a) +
           (node.rule.empty() ? " at " + std::to_string(node.b) : " rule(" + node.rule + ")");
  }

  std::string pair(const MaskNode &node) {
    std::string first = size(node, node.a);
    return "[" + first + ", " + size(node, node.b) + "]";
  }

  std::string random(const MaskNode &node) {
    std::string count = size(node, node.a);
    return "attn.random count " + count + " seed " + size(node, node.b) + (node.rule.empty() ? "" : " per_head");
  }

  std::string box(const MaskNode &node) {
    std::string text = "[" + size(node, node.a);
    for (int64_t bound : {node.b, node.c, node.d})
      text += ", " + size(node, bound);
    return text + "]";
  }

  std::string op(const MaskNode &node, const std::vector<std::string> &names) {
    switch (node.kind) {
    case MaskNode::Full:
      return "attn.full";
    case MaskNode::Causal:
      return "attn.causal";
    case MaskNode::Window:
      return "attn.window " + pair(node);
    case MaskNode::Rows:
      return "attn.rows " + pair(node);
    case MaskNode::Cols:
      return "attn.cols " + pair(node);
    case MaskNode::Box:
      return "attn.box " + box(node);
    case MaskNode::Prefix:
      return "attn.prefix [" + size(node, node.a) + "]";
    case MaskNode::StrideQ:
      return "attn.stride q" + offset(node);
    case MaskNode::StrideK:
      return "attn.stride k" + offset(node);
    case MaskNode::Random:
      return random(node);
    case MaskNode::Predicate:
      return predicate(node);
    case MaskNode::And:
      return "attn.and " + joined(names);
    case MaskNode::Or:
      return "attn.or " + joined(names);
    case MaskNode::Not:
      return "attn.not " + joined(names);
    case MaskNode::Heads:
      return "attn.heads " + joined(names);
    case MaskNode::Segment:
      return "attn.segment " + joined(names) + " by [" + size(node, node.a) + "]";
    case MaskNode::Blocks:
      return "attn.blocks " + joined(names) + " by [" + size(node, node.a) + "]";
    case MaskNode::Dilate:
      return "attn.dilate " + joined(names) + offset(node);
    }
    return "";
  }

  /// (q * a + k) and 7 compared with h or with b.
  static std::string predicate(const MaskNode &node) {
    return "attn.predicate {\n  ^bb0(%b: i32, %h: i32, %q: i32, %k: i32):\n    %ca = arith.constant " +
           std::to_string(node.a) + " : i32\n    %cb = arith.constant " + std::to_string(node.b) +
           " : i32\n    %c7 = arith.constant 7 : i32\n    %x = arith.muli %q, %ca : i32\n    %y = arith.addi %x, %k : "
           "i32\n"
           "    %z = arith.andi %y, %c7 : i32\n    %w = arith.addi %h, %cb : i32\n"
           "    %t = arith.cmpi slt, %z, %w : i32\n    attn.yield %t : i1\n  }";
  }

  std::vector<int64_t> &parameters;
  bool sharesSizes;
  int count = 0;
};

class Generator {
public:
  explicit Generator(std::mt19937 &random) : random(random) {}

  int64_t below(int64_t bound) { return int64_t(random() % uint32_t(bound)); }

  MaskNode mask(int depth, bool isInHeads) {
    MaskNode node;
    node.kind = MaskNode::Kind(depth <= 1 ? below(20) == 0 ? int64_t(MaskNode::Predicate) : below(MaskNode::Predicate)
                                          : below(MaskNode::Dilate + 1));
    if (depth > 1 && node.kind == MaskNode::Predicate && below(4) != 0)
      node.kind = MaskNode::Dilate;
    node.isRuntime = below(4) == 0;
    fillSizes(node, isInHeads);
    int64_t operands = operandCount(node.kind);
    for (int64_t i = 0; i < operands; ++i)
      node.operands.push_back(mask(depth - 1, isInHeads || node.kind == MaskNode::Heads));
    return node;
  }

private:
  int64_t operandCount(MaskNode::Kind kind) {
    switch (kind) {
    case MaskNode::And:
    case MaskNode::Or:
    case MaskNode::Heads:
      return 2 + below(2);
    case MaskNode::Not:
    case MaskNode::Segment:
    case MaskNode::Blocks:
    case MaskNode::Dilate:
      return 1;
    default:
      return 0;
    }
  }

  void fillSizes(MaskNode &node, bool isInHeads) {
    switch (node.kind) {
    case MaskNode::Segment:
    case MaskNode::Blocks:
      node.a = 1 + below(node.kind == MaskNode::Segment ? 24 : 12);
      return;
    case MaskNode::Box:
      fillAxis(node, node.a, node.b);
      fillAxis(node, node.c, node.d);
      return;
    case MaskNode::StrideQ:
    case MaskNode::StrideK:
      fillOffset(node, isInHeads, {"modulo", "block"});
      return;
    case MaskNode::Random:
      node.a = below(8);
      node.b = below(1000);
      node.rule = below(3) == 0 ? "per_head" : "";
      return;
    case MaskNode::Dilate:
      fillOffset(node, isInHeads, {"modulo", "block", "every", "every"});
      return;
    default:
      node.a = below(12);
      node.b = below(12);
    }
  }

  /// Ends before the first only at run time, where that keeps nothing.
  void fillAxis(const MaskNode &node, int64_t &first, int64_t &end) {
    first = below(30);
    end = node.isRuntime && below(4) == 0 ? below(30) : first + below(40);
  }

  void fillOffset(MaskNode &node, bool isInHeads, std::vector<std::string> rules) {
    node.a = 1 + below(5);
    node.b = below(node.a);
    if (isInHeads)
      rules.push_back("group");
    if (below(2) == 0)
      node.rule = rules[below(rules.size())];
  }

  std::mt19937 &random;
};

/// Calls `visit` for every node of a tree.
void forEachNode(MaskNode &node, const std::function<void(MaskNode &)> &visit) {
  visit(node);
  for (MaskNode &operand : node.operands)
    forEachNode(operand, visit);
}

/// Multiplies sizes by `grain`; a mask of single positions mostly becomes one of blocks.
void makeCoarse(std::mt19937 &random, MaskNode &node, int64_t grain) {
  for (int64_t MaskNode::*size : {&MaskNode::a, &MaskNode::b, &MaskNode::c, &MaskNode::d})
    if (node.kind == MaskNode::Box ||
        ((node.kind == MaskNode::Segment || node.kind == MaskNode::Blocks) && size == &MaskNode::a))
      node.*size *= grain;
  if (node.kind == MaskNode::Blocks) // what it holds are blocks already
    return;
  for (MaskNode &operand : node.operands)
    makeCoarse(random, operand, grain);
  if (!node.operands.empty() || node.kind == MaskNode::Full || node.kind == MaskNode::Box || random() % 8 == 0)
    return;
  MaskNode blocks;
  blocks.kind = MaskNode::Blocks;
  blocks.a = grain * (1 + random() % 2);
  blocks.operands.push_back(std::move(node));
  node = std::move(blocks);
}

int64_t extremeSize(std::mt19937 &random, int64_t otherwise) {
  constexpr int64_t end = int64_t(1) << 30;
  static const int64_t sizes[] = {2 * end - 1, 2 * end - 1, end + 1, end,  end - 1,
                                  end / 2 + 1, 700000000,   65536,   46341};
  const size_t chosen = random() % 16;
  return chosen < std::size(sizes) ? sizes[chosen] : otherwise;
}

void makeExtreme(std::mt19937 &random, MaskNode &node) {
  for (MaskNode &operand : node.operands)
    makeExtreme(random, operand);
  const bool isLength = node.kind == MaskNode::Segment || node.kind == MaskNode::Blocks;
  const bool hasEdges = node.kind == MaskNode::Window || node.kind == MaskNode::Rows || node.kind == MaskNode::Cols;
  if (isLength || hasEdges || node.kind == MaskNode::Prefix)
    node.a = extremeSize(random, node.a);
  if (hasEdges || node.kind == MaskNode::Box)
    node.b = extremeSize(random, node.b);
  if (node.kind == MaskNode::Box)
    node.d = extremeSize(random, node.d);
  if (isLength || random() % 2)
    node.isRuntime = random() % 4 != 0;
  if (!node.operands.empty() || node.kind == MaskNode::Full || random() % 2)
    return;
  MaskNode inBlocks;
  inBlocks.kind = random() % 4 ? MaskNode::Blocks : MaskNode::Segment;
  inBlocks.a = extremeSize(random, 1 + random() % 9);
  inBlocks.isRuntime = random() % 4 != 0;
  inBlocks.operands.push_back(std::move(node));
  node = std::move(inBlocks);
}

/// What one node may be replaced by.
std::vector<MaskNode> simplerNodes(const MaskNode &node) {
  std::vector<MaskNode> simpler = node.operands;
  auto add = [&](auto change) {
    MaskNode copy = node;
    change(copy);
    simpler.push_back(std::move(copy));
  };
  if (node.kind != MaskNode::Full)
    simpler.push_back(MaskNode{});
  if (node.operands.size() > 2)
    for (size_t i = 0; i < node.operands.size(); ++i)
      add([&](MaskNode &copy) { copy.operands.erase(copy.operands.begin() + i); });
  if (node.isRuntime)
    add([](MaskNode &copy) { copy.isRuntime = false; });
  bool isLength = node.kind == MaskNode::Segment || node.kind == MaskNode::Blocks;
  int64_t least =
      isLength || node.kind == MaskNode::Dilate || node.kind == MaskNode::StrideQ || node.kind == MaskNode::StrideK;
  for (int64_t step : {node.a / 2, int64_t(1)})
    if (step > 0 && node.a - step >= least && (!least || isLength || node.b < node.a - step))
      add([&](MaskNode &copy) { copy.a -= step; });
  for (int64_t MaskNode::*field : {&MaskNode::b, &MaskNode::c, &MaskNode::d})
    if (node.*field > 0)
      add([&](MaskNode &copy) { --(copy.*field); });
  if (!node.rule.empty())
    add([](MaskNode &copy) { copy.rule.clear(); });
  return simpler;
}

} // namespace

std::string RandomCase::text(std::vector<int64_t> &parameters) const {
  if (!sharesSizes)
    parameters.clear();
  Printer printer(parameters, sharesSizes);
  std::string operands;
  for (const MaskNode &branch : branches)
    operands += (operands.empty() ? "" : ", ") + printer.define(branch);
  std::string arguments;
  for (size_t i = 0; i < parameters.size(); ++i)
    arguments += (i ? ", %p" : "%p") + std::to_string(i) + ": i32";
  return "attn.pattern @p(" + arguments + ") {\n" + printer.body + "  attn.softmax " + (isUnion ? "union(" : "lse(") +
         operands + ")\n}\n";
}

std::string RandomCase::describe() const {
  std::vector<int64_t> parameters;
  std::string report = text(parameters);
  report += "heads " + std::to_string(heads) + ", seqlen_q " + std::to_string(seqlenQ) + ", seqlen_k " +
            std::to_string(seqlenK) + ", q_origin " + std::to_string(qOrigin) + ", k_origin " +
            std::to_string(kOrigin) + ", tiles " + std::to_string(blockM) + " x " + std::to_string(blockN) + ", sizes";
  for (int64_t parameter : parameters)
    report += " " + std::to_string(parameter);
  return report;
}

RandomCase randomCase(std::mt19937 &random, int depth) {
  Generator generator(random);
  RandomCase made;
  int64_t branches = generator.below(3) == 0 ? 2 : 1;
  for (int64_t i = 0; i < branches; ++i)
    made.branches.push_back(generator.mask(1 + generator.below(depth), false));
  made.isUnion = generator.below(3) != 0;
  made.heads = 1 + generator.below(5);
  made.seqlenQ = generator.below(71);
  made.seqlenK = generator.below(3) == 0 ? made.seqlenQ : generator.below(71);
  int64_t where = generator.below(4);
  made.qOrigin = where == 0 ? made.seqlenK - made.seqlenQ : where == 1 ? generator.below(41) - 20 : 0;
  made.kOrigin = generator.below(8) == 0 ? generator.below(20) : 0;
  static const int64_t blocks[] = {1, 2, 3, 5, 7, 8, 16, 17, 32, 48, 64};
  made.blockM = blocks[generator.below(11)];
  made.blockN = blocks[generator.below(11)];
  return made;
}

RandomCase coarseCase(std::mt19937 &random, int depth, int64_t grain) {
  RandomCase made = randomCase(random, depth);
  for (MaskNode &branch : made.branches)
    makeCoarse(random, branch, grain);
  made.qOrigin = made.kOrigin = 0;
  return made;
}

RandomCase extremeCase(std::mt19937 &random, int depth) {
  RandomCase made = randomCase(random, depth);
  for (MaskNode &branch : made.branches)
    makeExtreme(random, branch);
  return made;
}

RandomCase bandedCase(std::mt19937 &random, int depth, int64_t grain) {
  RandomCase made = coarseCase(random, depth, grain);
  for (MaskNode &branch : made.branches) {
    MaskNode list, blocks, either, band, both;
    list.kind = MaskNode::Random;
    list.a = 1 + random() % 3;
    list.b = random() % 100;
    blocks.kind = MaskNode::Blocks;
    blocks.a = grain * (1 + random() % 2);
    blocks.operands = {list};
    either.kind = random() % 2 ? MaskNode::Or : MaskNode::And;
    either.operands = {branch, blocks};
    band.kind = random() % 2 ? MaskNode::Causal : MaskNode::Window;
    band.a = random() % 40;
    band.b = random() % 20;
    band.isRuntime = band.kind == MaskNode::Window && random() % 2;
    both.kind = MaskNode::And;
    both.operands = {either, band};
    branch = both;
  }
  return made;
}

std::vector<RandomCase> simplerCases(const RandomCase &failing) {
  std::vector<RandomCase> cases;
  auto add = [&](auto change) {
    cases.push_back(failing);
    change(cases.back());
  };
  for (size_t i = 0; failing.branches.size() > 1 && i < failing.branches.size(); ++i)
    add([&](RandomCase &copy) { copy.branches.erase(copy.branches.begin() + i); });
  for (size_t branch = 0; branch < failing.branches.size(); ++branch) {
    std::vector<MaskNode> nodes;
    MaskNode tree = failing.branches[branch];
    forEachNode(tree, [&](MaskNode &node) { nodes.push_back(node); });
    for (size_t index = 0; index < nodes.size(); ++index)
      for (const MaskNode &simpler : simplerNodes(nodes[index]))
        add([&](RandomCase &copy) {
          size_t at = 0;
          bool isDone = false;
          forEachNode(copy.branches[branch], [&](MaskNode &node) {
            if (!isDone && at++ == index) {
              isDone = true;
              MaskNode replacement = simpler;
              node = std::move(replacement);
            }
          });
        });
  }
  for (int64_t RandomCase::*field : {&RandomCase::heads, &RandomCase::blockM, &RandomCase::blockN})
    for (int64_t step : {failing.*field / 2, int64_t(1)})
      if (step > 0 && failing.*field - step >= 1)
        add([&](RandomCase &copy) { copy.*field -= step; });
  for (int64_t RandomCase::*field :
       {&RandomCase::seqlenQ, &RandomCase::seqlenK, &RandomCase::qOrigin, &RandomCase::kOrigin})
    for (int64_t next : {int64_t(0), failing.*field / 2, failing.*field - (failing.*field > 0 ? 1 : -1)})
      if (failing.*field != 0 && std::abs(next) < std::abs(failing.*field))
        add([&](RandomCase &copy) { copy.*field = next; });
  return cases;
}

} // namespace heddle::test
