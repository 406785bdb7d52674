#include "compiler/Views/CostPairs.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Cost/Search.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Views/Explanation.h"
#include "compiler/Views/RingPlan.h"
#include "runtime/Core/CountText.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace heddle::views {
namespace {

using cost::AttentionSpec;
using cost::ContextShare;
using cost::CostProblem;

constexpr int64_t kMostPlanned = 64;
constexpr double kEven = 1.05; ///< contiguous parts of less send least and are even enough

class PairWriter {
public:
  PairWriter(CostProblem &problem, AttentionSpec &spec, size_t index, const TunedWinners *tuned)
      : problem(problem), spec(spec), tuned(tuned),
        where(problem.where + ": attention[" + std::to_string(index) + "]: ") {}

  Status write(const std::function<void(double)> &progress) {
    HEDDLE_ASSIGN(file, placed(PatternFile::load(path())));
    HEDDLE_TRY(checkSizes());
    Result<std::vector<int64_t>> parameters = placed(file->bindParameters(spec.sizes));
    if (!parameters)
      return parameters.status();
    shape.heads = problem.model.heads;
    shape.kvHeads = problem.model.kvHeads;
    shape.seqlenQ = shape.seqlenK = problem.context;
    shape.parameters = parameters.take();
    nameSizes();
    HEDDLE_TRY(placed(bindOperands(*file, {operands(), {}, OperandSources::Missing::leaveOut}, shape)));
    HEDDLE_TRY(checkTensors());
    sizes = sizesOf(*file, shape);
    HEDDLE_TRY(addCount());
    addRate();
    spec.workspaceBytes = workspace();
    return addShares(progress);
  }

private:
  Status placed(const Status &status) const {
    return status.isOk() ? status : Status(status.code(), where + status.message());
  }
  template <class T> Result<T> placed(Result<T> result) const {
    return result ? std::move(result) : Result<T>(placed(result.status()));
  }

  /// Files count from the folder of the problem.
  std::string placedFile(const std::string &name) const {
    const std::filesystem::path beside = std::filesystem::path(problem.where).parent_path() / name;
    std::error_code ignored;
    return std::filesystem::is_regular_file(beside, ignored) ? beside.string() : name;
  }
  std::string path() const { return placedFile(spec.pattern); }

  std::vector<std::string> operands() const {
    std::vector<std::string> assignments;
    for (const std::string &operand : spec.operands) {
      const size_t file = operand.find('=') + 1, tensor = std::min(operand.find(':', file), operand.size());
      assignments.push_back(operand.substr(0, file) + placedFile(operand.substr(file, tensor - file)) +
                            operand.substr(tensor));
    }
    return assignments;
  }

  /// All that are missing at once, as a plan writes them.
  Status checkSizes() const {
    attn::PatternOp pattern = file->pattern();
    std::string missing;
    for (unsigned i = 0; i < pattern.getNumArguments(); ++i) {
      const std::string name = pattern.getParameterName(i).str();
      const bool isGiven = std::any_of(spec.sizes.begin(), spec.sizes.end(),
                                       [&](const std::string &size) { return size.rfind(name + "=", 0) == 0; });
      if (!pattern.isOperand(i) && !pattern.getParameterDefault(i) && !isGiven)
        missing += (missing.empty() ? "\"" : ", \"") + name + "\": NUMBER";
    }
    return missing.empty()
               ? Status()
               : placed(Status::invalidArgument(
                     "'" + spec.pattern + "' has sizes without a default: give them as \"set\": {" + missing + "}"));
  }

  /// Those too that the pattern has a default of.
  void nameSizes() {
    attn::PatternOp pattern = file->pattern();
    std::vector<std::string> all;
    for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
      if (!pattern.isOperand(i) && !pattern.isRealParameter(i))
        all.push_back(pattern.getParameterName(i).str() + "=" + std::to_string(shape.parameters[i]));
    if (all.size() == size_t(pattern.getNumArguments()))
      spec.sizes = std::move(all);
  }

  Status checkTensors() const {
    attn::PatternOp pattern = file->pattern();
    for (unsigned argument : file->analysis().maskTensors)
      if (argument >= shape.operands.size() || !shape.operands[argument]) {
        const std::string name = pattern.getParameterName(argument).str();
        return placed(Status::invalidArgument("the tensor '" + name + "' says what '" + spec.pattern +
                                              "' keeps: give it as \"operands\": {\"" + name +
                                              "\": \"FILE.safetensors:TENSOR\"}"));
      }
    return {};
  }

  Status addCount() {
    HEDDLE_ASSIGN(const KeptPairs kept, placed(keptPairsOf(*file, sizes, shape.operands)));
    if (!kept.count)
      return placed(Status::invalidArgument("kept pairs of '" + spec.pattern + "' are " + kept.note));
    spec.pairs = static_cast<double>(*kept.count);
    return {};
  }

  void addRate() {
    const cost::Accelerator &gpu = problem.cluster.gpu;
    const double rows = double(problem.context) * double(problem.model.heads);
    attn::PatternOp pattern = file->pattern();
    spec.rate = cost::attentionRate({spec.kernel, pattern.getSymName().str(), problem.model.headDim,
                                     std::max(1.0, spec.pairs / rows), gpu.name, gpu.tflops});
    if (tuned && spec.kernel == cost::AttentionKernel::heddle)
      addTuned(std::max(1.0, spec.pairs / rows));
    else if (spec.rate.isGuess && spec.kernel == cost::AttentionKernel::heddle)
      spec.rate.advice = "on " + gpu.name + " run " + tuneCommand(false) + ", " + tuneCommand(true) +
                         " and give heddle cost the same --db";
    if (spec.givenForward)
      spec.rate.forward = *spec.givenForward;
    if (spec.givenBackward)
      spec.rate.backward = *spec.givenBackward;
    if (spec.givenForward && spec.givenBackward) {
      spec.rate = {spec.rate.forward, spec.rate.backward, false, "as given", {}};
    }
  }

  /// What the database has; of what it lacks, what the table says stays.
  void addTuned(double keysOfRow) {
    const cost::ModelSpec &model = problem.model;
    const std::string table = spec.rate.note;
    std::string measured, lacking;
    for (const bool isBackward : {false, true}) {
      const auto rate =
          tunedRate(*tuned, {*file, isBackward, model.headDim, model.valueDim, keysOfRow, problem.cluster.gpu.name});
      if (rate) {
        (isBackward ? spec.rate.backward : spec.rate.forward) = rate->tflops;
        measured +=
            (measured.empty() ? "measured: " : ", ") + std::string(isBackward ? "backward " : "") + rate->problem;
      } else if (!(isBackward ? spec.givenBackward : spec.givenForward)) {
        lacking += (lacking.empty() ? "" : ", ") + tuneCommand(isBackward);
      }
    }
    spec.rate.isGuess = !lacking.empty();
    spec.rate.note = measured.empty() ? "" : measured + ", " + tuned->database;
    if (lacking.empty())
      return;
    spec.rate.note +=
        (measured.empty() ? "" : "; ") + std::string("not in ") + tuned->database + ", meanwhile " + table;
    spec.rate.advice = "on " + problem.cluster.gpu.name + " run " + lacking;
  }

  /// Sequences beyond 32k have the same rates as those of 32k.
  std::string tuneCommand(bool isBackward) const {
    constexpr int64_t kLongest = 32768;
    const cost::ModelSpec &model = problem.model;
    std::string command = std::string("heddle tune ") + path() + (isBackward ? " --backward" : "") +
                          " --heads=" + std::to_string(model.heads);
    if (model.kvHeads != model.heads)
      command += " --kv-heads=" + std::to_string(model.kvHeads);
    command += " --seqlen=" + std::to_string(std::min(problem.context, kLongest)) +
               " --head-dim=" + std::to_string(model.headDim);
    if (model.valueDim != model.headDim)
      command += " --value-dim=" + std::to_string(model.valueDim);
    for (const std::string &operand : operands())
      command += " --operand " + operand;
    for (const std::string &size : spec.sizes)
      command += " --set " + size;
    return command + " --db=" + (tuned ? tuned->database : "FILE");
  }

  /// Of gradients, for one sequence: as the kernels' plan says; sums of d_q in fp32 and two numbers of each row where no
  /// kernel of this project is meant or there is none.
  double workspace() const {
    if (spec.kernel == cost::AttentionKernel::materialised)
      return 0;
    if (spec.kernel == cost::AttentionKernel::heddle)
      if (const auto bytes = plannedWorkspace())
        return *bytes;
    return double(problem.context) * double(problem.model.heads) * double(4 * problem.model.headDim + 8);
  }

  std::optional<double> plannedWorkspace() const {
    const Result<const GpuModel *> gpu = findGpuModel(problem.cluster.gpu.name);
    if (!gpu)
      return std::nullopt;
    ExplainRequest request;
    request.kind = Kind{KindBase::backward};
    request.sizes = sizes;
    request.kvHeads = problem.model.kvHeads;
    request.headDim = problem.model.headDim;
    request.valueDim = problem.model.valueDim;
    request.gpu = *gpu;
    Explanation explanation;
    explainKernel(*file, request, explanation);
    return explanation.workspace ? std::optional(double(explanation.workspace->bytes)) : std::nullopt;
  }

  /// Beyond kMostPlanned ranks as of so many: what windows look back on stays, and causal rows ask for all but a 64th.
  Status addShares(const std::function<void(double)> &progress) {
    auto shares = std::make_shared<std::map<int64_t, ContextShare>>();
    const std::vector<int64_t> contexts = cost::contextsOf(problem);
    for (size_t index = 0; index < contexts.size(); ++index) {
      if (progress)
        progress(double(index) / double(contexts.size()));
      const int64_t ranks = std::min({contexts[index], kMostPlanned, problem.context});
      if (ranks > 1 && !shares->count(ranks))
        HEDDLE_TRY(placed(plan(ranks, (*shares)[ranks])));
    }
    spec.share = [shares](int64_t ranks) {
      const auto found = shares->upper_bound(std::min(ranks, kMostPlanned));
      return found == shares->begin() ? ContextShare() : std::prev(found)->second;
    };
    return {};
  }

  Status plan(int64_t ranks, ContextShare &share) {
    RingRequest request;
    request.sizes = sizes;
    request.ranks = ranks;
    request.call.heads = problem.model.heads;
    request.call.kvHeads = problem.model.kvHeads;
    request.call.headDim = problem.model.headDim;
    request.call.valueDim = problem.model.valueDim;
    request.call.rates = {1, 0, 1}; // nobody reads its times
    request.layout = "contiguous";
    HEDDLE_ASSIGN(auto ring, planRing(*file, request));
    if (ring->plan->balance().value_or(1) > kEven) {
      request.layout = "zigzag";
      HEDDLE_ASSIGN(ring, planRing(*file, request));
    }
    share.layout = ring->name;
    if (const auto balance = ring->plan->balance())
      share.balance = *balance;
    else // too many evaluations
      assumeEven(ranks);
    for (const RankTime &rank : ring->times.ranks)
      share.keysReceived = std::max(share.keysReceived, static_cast<double>(rank.receives));
    share.keysReceived /= double(request.call.bytesOfKey()) * double(request.call.kvHeads);
    return {};
  }

  void assumeEven(int64_t ranks) {
    if (isAssumedEven)
      return;
    isAssumedEven = spec.rate.isGuess = true;
    spec.rate.note += "; assumed: parts of " + counted(ranks, "rank") + " and more keep evenly many pairs";
  }

  CostProblem &problem;
  AttentionSpec &spec;
  const TunedWinners *tuned;
  std::string where;
  std::unique_ptr<PatternFile> file;
  ProblemShape shape;
  attn::ProblemSizes sizes;
  bool isAssumedEven = false;
};

} // namespace

Status addPairs(CostProblem &problem, const TunedWinners *tuned, const std::function<void(double)> &progress) {
  const size_t count = problem.attention.size();
  for (size_t index = 0; index < count; ++index) {
    const auto part = [&](double share) { progress((double(index) + share) / double(count)); };
    HEDDLE_TRY(PairWriter(problem, problem.attention[index], index, tuned)
                   .write(progress ? std::function<void(double)>(part) : std::function<void(double)>()));
  }
  return {};
}

} // namespace heddle::views
