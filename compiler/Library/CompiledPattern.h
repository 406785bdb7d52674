// Owns a parsed pattern for callers on any thread: what they are told of it, the sizes of their calls, and what is made
// of it once and used often.
#pragma once

#include "codegen/Cpu/CpuCall.h"
#include "codegen/Emit/PatternInfo.h"
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Library/heddle_compiler.h"
#include "dialect/IR/Operands.h"
#include "runtime/Core/CallChecks.h"
#include "compiler/Group/GroupForms.h"
#include "runtime/Core/GroupPlan.h"
#include "runtime/Api/HandleLife.h"

#include <deque>
#include <map>
#include <mutex>
#include <variant>

namespace heddle {

class JitPattern;

/// Thread safe.
class CompiledPattern {
public:
  /// The failures of PatternFile::parse.
  static Result<std::shared_ptr<CompiledPattern>> create(const std::string &text, const std::string &label,
                                                         const std::string &name);

  /// The same whose calls are parts of a whole (attn-part). unsupported: why they cannot be.
  Result<std::shared_ptr<CompiledPattern>> part();

  const heddle_pattern_info &info() const { return facts; }
  const std::vector<heddle_pattern_argument> &arguments() const { return described; }

  /// Words of all arguments (ProblemShape::parameters): defaults, and what the caller gives. invalidArgument names the
  /// argument that is unknown, missing, of another kind or out of bounds. `whole`: where the whole ends, if nobody says it.
  Result<std::vector<int64_t>> parameters(const heddle_operand *operands, uint64_t count, bool needsLengths,
                                          std::optional<int64_t> whole = {});
  /// Position of query 0 of a call.
  int64_t queryOrigin(int64_t given, int64_t seqlenQ, int64_t seqlenK) const;
  QOriginRule originRule() const { return origin; }
  /// Arguments that say where the whole ends, of which calls are parts.
  const std::vector<int64_t> &wholes() const { return wholeArguments; }

  /// What a call of the kind gives the arguments: those that it must give are tensors, lengths, and sizes without a default.
  OperandNumbers operandNumbers(const Kind &kind) const;
  /// What sizes and lengths must be, with the names of arguments in the message.
  Status checkWords(const LaunchSymbols &symbols) const;
  /// unsupported: sequences of different lengths cannot share its tensors.
  Status checkPages() const { return noPages.empty() ? Status() : Status::unsupported("operands: " + noPages); }
  /// Judges what the tensors of integers hold of a call whose words passed, in the words of tensors from files.
  Status checkIntegers(const CpuCall &call);
  /// Over a whole call: who keeps what of it, and which rank sends it to whom (dialect/Geometry/GroupPlanner.h). Tensors of
  /// integers, in host memory, are read. invalidArgument: sizes or tensors are none of the pattern.
  Result<GroupPlan> groupPlan(const heddle_group_options &options);
  /// The form of such a plan, where it is to be chosen.
  Result<FormChoice> groupForm(const heddle_group_options &options);
  /// Bytes of a tensor in a call.
  int64_t bytesOf(int32_t argument, const CpuCall &call) const;

  /// Where `call` writes the gradient of one of the arguments, whose sizes it has. invalidArgument: there is no such one.
  Result<CpuCall::ArgumentGradient> gradientOf(const heddle_gradient &wanted, const CpuCall &call) const;

  Result<std::shared_ptr<const PreparedPattern>> prepared(Walk walk);
  Result<std::shared_ptr<const JitPattern>> machineCode(Walk walk);
  /// The shape was checked. Sizes that were asked for before are answered from memory.
  Result<ProblemBucket> bucket(const ProblemShape &shape, const CallShape &call, int64_t smCount);

  /// Over batch and heads. unsupported: there is no closed form, or tensors decide.
  Result<int64_t> keptPairs(const ProblemShape &shape);

  /// The same pattern for one thread that works on it for long: a context of MLIR serves one thread at a time.
  Result<std::unique_ptr<PatternFile>> copyForThread() const;

private:
  CompiledPattern() = default;
  void describe();
  void describeDimensions(unsigned argument);
  const char *keep(std::string text) { return texts.emplace_back(std::move(text)).c_str(); }
  using UseGroup = std::function<Status(attn::GroupPlanRequest &request)>;
  Status withGroup(const heddle_group_options &options, const UseGroup &use);
  /// The word of a size, a number or the length of a tensor.
  Result<int64_t> wordOf(const heddle_operand &operand) const;

  std::unique_ptr<PatternFile> file; ///< parsed once
  std::string label;
  QOriginRule origin = QOriginRule::start;
  std::vector<int64_t> wholeArguments;
  std::string noPages;
  std::vector<ArgumentBound> bounds;
  heddle_pattern_info facts = {};
  std::vector<heddle_pattern_argument> described;
  /// A dimension of a tensor: its extent, or, where the type says `?`, what that stands for.
  using Dimension = std::variant<int64_t, attn::Extent>;
  struct Tensor {
    std::vector<Dimension> dimensions;
    int64_t elementBytes = 0;
    bool isOfIntegers = false;
  };
  std::vector<Tensor> tensors; ///< by argument
  static bool isExtent(const Dimension &dimension, attn::Extent extent) {
    const attn::Extent *known = std::get_if<attn::Extent>(&dimension);
    return known && *known == extent;
  }
  int64_t extentOf(const Dimension &dimension, int32_t argument, const CpuCall &call) const;
  int64_t elementsOf(int32_t argument, const CpuCall &call) const;
  attn::TensorData integersOf(const heddle_operand *operands, uint64_t count, const CpuCall &call) const;
  std::deque<std::string> texts; ///< what facts and described point to

  std::mutex mutex; ///< guards the use of file, and what follows
  std::map<Walk, std::shared_ptr<const PreparedPattern>> preparedOnce;
  std::map<Walk, std::shared_ptr<const JitPattern>> machineCodeOnce;
  std::map<std::vector<int64_t>, ProblemBucket> buckets;
};

} // namespace heddle

struct heddle_pattern {
  std::shared_ptr<heddle::CompiledPattern> pattern;
  heddle::HandleLife life{};
};
