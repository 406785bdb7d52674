//===- GradientCall.h - a call of kind backward with random inputs ----------===//
// Owns how tests make such calls: a pattern compiled for the CPU, what a call of it reads, out and lse as the CPU
// computes them, and its gradients there.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_GRADIENTCALL_H
#define HEDDLE_TESTS_UNIT_SUPPORT_GRADIENTCALL_H

#include "codegen/Cpu/CpuKinds.h"
#include "compiler/Oracle/GradientOracle.h"
#include "compiler/Session/CompileForCpu.h"
#include "dialect/IR/PatternOperands.h"
#include "dialect/IR/RealWord.h"
#include "dialect/IR/ScoreChain.h"
#include "support/PatternFiles.h"

#include <doctest/doctest.h>

namespace heddle::test {

inline const Kind kForward = {};
inline const Kind kForwardKeyMajor = {KindBase::forward, Adds::none, false, {}, /*hasKeyMajorValues=*/true};
inline const Kind kBackward = {KindBase::backward};
inline const Kind kAccumulate = {KindBase::backward, Adds::all};
inline const Kind kDeterministic = {KindBase::backward, Adds::none, /*isDeterministic=*/true};
inline const Kind kAccumulateDeterministic = {KindBase::backward, Adds::all, true};

/// Compiled once, for calls in both directions.
struct Compiled {
  explicit Compiled(std::unique_ptr<PatternFile> given) : file(std::move(given)) {
    auto compiled = compileForCpu(*file, Walk::both);
    REQUIRE_MESSAGE(compiled.isOk(), compiled.status().message());
    jit = compiled.take();
  }
  std::unique_ptr<PatternFile> file;
  std::shared_ptr<const JitPattern> jit;
};

/// A pattern with what one call of it reads, random d_out and d_lse.
struct Call {
  Call(const Compiled &given, const AttentionSizes &sizes, DType dtype = DType::fp32, bool hasDLse = true,
       const Kind &kind = kBackward, int64_t scaleRows = 0)
      : file(given.file.get()), jit(given.jit) {
    shape = shapeOf(sizes);
    shape.parameters = sizesFrom(*file, 3);
    attn::PatternOp pattern = file->pattern();
    for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
      if (pattern.isRealParameter(i))
        shape.parameters[i] = pattern.getParameterDefault(i).value_or(0);
    if (!bindOperands(*file, {{}, {}, OperandSources::Missing::make, 1}, shape).isOk()) {
      // One tensor for both axes.
      shape.seqlenQ = shape.seqlenK = std::max(sizes.seqlenQ, sizes.seqlenK);
      REQUIRE(bindOperands(*file, {{}, {}, OperandSources::Missing::make, 1}, shape).isOk());
    }
    AttentionSizes fitting = sizes;
    fitting.seqlenQ = shape.seqlenQ, fitting.seqlenK = shape.seqlenK;
    if (!shape.operands.empty() && shape.batch == 1)
      fitting.batch = 1;
    auto made = randomAttentionInputs(
        fitting, dtype, 5, kind, {hasDLse ? std::vector<Role>{Role::dLse} : std::vector<Role>(), {}, {}, scaleRows});
    REQUIRE_MESSAGE(made.isOk(), made.status().message());
    inputs = made.take();
    Kind forward = kForward;
    forward.hasKeyMajorValues = kind.hasKeyMajorValues;
    compute(forward, inputs);
  }

  oracle::Problem problem() const {
    const attn::ProblemSizes sizes = sizesOf(*file, shape);
    return {sizes.heads, sizes.seqlenQ, sizes.seqlenK, sizes.qOrigin, sizes.kOrigin, sizes.parameters, shape.operands};
  }
  oracle::KindCall kindCall() const { return {file->pattern(), problem(), inputs, scale}; }
  /// From now on the call gives all gradients of arguments, too.
  void askForArguments() { inputs.kind.gradientsOf = arguments(); }
  /// What scores, and sinks, have derivatives by; ascending.
  std::vector<int64_t> arguments() const {
    std::vector<int64_t> numbers;
    attn::PatternOp pattern = file->pattern();
    attn::SoftmaxOp softmax = pattern.getSoftmax();
    for (mlir::BlockArgument argument : attn::argumentsOfScores(softmax.getScores()))
      numbers.push_back(argument.getArgNumber());
    if (mlir::Value sink = softmax.getDynamicSink())
      if (const int64_t number = llvm::cast<mlir::BlockArgument>(sink).getArgNumber();
          std::find(numbers.begin(), numbers.end(), number) == numbers.end())
        numbers.push_back(number);
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }
  /// Of the gradients of these arguments.
  std::vector<HostTensor> argumentTensors() const {
    std::vector<HostTensor> tensors;
    for (int64_t argument : arguments()) {
      attn::PatternOp pattern = file->pattern();
      const bool isTensor = pattern.isOperand(unsigned(argument));
      tensors.push_back(
          HostTensor::zeros(DType::fp32, isTensor ? shape.operands[argument].shape : std::vector<int64_t>{1}));
    }
    return tensors;
  }
  oracle::AttentionOracle forward() const { return {file->pattern(), problem(), inputs, scale}; }

  /// Computes a call of the kind on the CPU, from the inputs.
  void compute(const Kind &kind, RoleTensors &results, int threads = 0, int block = 16,
               std::vector<HostTensor> *ofArguments = nullptr) const {
    const Status status = tryToCompute(kind, results, threads, block, ofArguments);
    REQUIRE_MESSAGE(status.isOk(), status.message());
  }
  Status tryToCompute(const Kind &kind, RoleTensors &results, int threads = 0, int block = 16,
                      std::vector<HostTensor> *ofArguments = nullptr) const {
    RoleTensors empty = emptyResultsOf(kind, inputs.sizes, inputs.elements());
    CpuCall call;
    call.pattern = jit.get();
    call.elements = inputs.elements();
    call.adds = kind.adds, call.hasKeyMajorValues = kind.hasKeyMajorValues;
    for (const KindRole &role : kind.roles())
      if (includes(role.access, Access::read) && inputs.isGiven(role.role))
        call.role[size_t(role.role)] = const_cast<std::byte *>(inputs.of(role.role).data.data());
    for (const RoleSpec &role : rolesOf(kind, Access::write)) {
      const bool isAddedTo = kind.find(role.role)->access == Access::both;
      results.of(role.role) = isAddedTo ? inputs.of(role.role) : std::move(empty.of(role.role));
      for (std::byte &byte : results.of(role.role).data) // NaN of every type: each element must be written
        byte = isAddedTo ? byte : std::byte(0xff);
      call.role[size_t(role.role)] = results.of(role.role).data.data();
    }
    const attn::ProblemSizes positions = sizesOf(*file, shape);
    setSizes(inputs.sizes, call);
    call.qOrigin = int(positions.qOrigin), call.kOrigin = int(positions.kOrigin), call.scale = float(scale);
    call.params.assign(shape.parameters.begin(), shape.parameters.end());
    for (const OperandTensor &tensor : shape.operands)
      if (tensor)
        call.operands.push_back(tensor.address());
    for (size_t i = 0; ofArguments && i < ofArguments->size(); ++i) {
      attn::PatternOp pattern = file->pattern();
      const unsigned argument = unsigned(arguments()[i]);
      HostTensor &gradient = (*ofArguments)[i];
      for (int64_t element = 0; element < gradient.elements(); ++element)
        gradient.set(element, NAN);
      call.argumentGradients.push_back({int(argument), reinterpret_cast<float *>(gradient.data.data()),
                                        gradient.elements(),
                                        pattern.isOperand(argument) && attn::hasQueries(pattern, argument)});
    }
    call.blockM = block, call.blockN = block + 3, call.threads = threads;
    return cpuFunctionOf(kind.base)(call);
  }
  RoleTensors gradients(int threads = 0, int block = 16) const {
    RoleTensors results;
    compute(inputs.kind, results, threads, block);
    return results;
  }

  /// The loss where one element of an argument is larger by `step`, which becomes `value`.
  template <class Loss>
  double withMoved(unsigned argument, int64_t element, double step, double &value, const Loss &loss) {
    const ProblemShape before = shape;
    attn::PatternOp pattern = file->pattern();
    if (pattern.isOperand(argument)) {
      OperandTensor &tensor = shape.operands[argument];
      std::vector<float> values;
      for (int64_t i = 0; i < tensor.elements(); ++i)
        values.push_back(float(tensor.real(i)) + (i == element ? float(step) : 0));
      tensor = OperandTensor::reals(tensor.element, tensor.shape, values);
      value = tensor.real(element);
    } else {
      value = attn::realOfWord(shape.parameters[argument]) + step;
      shape.parameters[argument] = attn::wordOfReal(float(value));
    }
    const double at = loss.value();
    shape = before;
    return at;
  }

  const PatternFile *file;
  std::shared_ptr<const JitPattern> jit;
  ProblemShape shape;
  AttentionInputs inputs;
  double scale = 0.3;
};

} // namespace heddle::test

#endif
