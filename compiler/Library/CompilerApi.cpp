#include "compiler/Session/DatabasePaths.h"
#include "compiler/Measure/DeviceProblem.h"
#include "compiler/Library/EmbeddedCompiler.h"
#include "runtime/Api/Handles.h"
#include "runtime/Core/QueryRows.h"

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

using namespace heddle;

struct heddle_compiler {
  std::unique_ptr<EmbeddedCompiler> compiler;
  HandleLife life{};
};
struct heddle_task {
  std::shared_ptr<Task> task;
  HandleLife life{};
};

namespace {

namespace fs = std::filesystem;

/// bin/heddle beside the folder of this library, else of PATH; empty if there is none.
std::string findProgram() {
  std::vector<fs::path> folders;
  Dl_info here = {};
  if (::dladdr(reinterpret_cast<const void *>(&heddle_compiler_open), &here) && here.dli_fname) {
    std::error_code error;
    // gone, or named from a folder that was left
    if (const fs::path library = fs::canonical(here.dli_fname, error); !error)
      folders.push_back(library.parent_path().parent_path() / "bin");
  }
  const char *path = std::getenv("PATH");
  for (const std::string &folder : splitPaths(path ? path : ""))
    folders.push_back(folder);
  for (const fs::path &folder : folders)
    if (const fs::path program = folder / "heddle";
        program.is_absolute() && ::access(program.c_str(), X_OK) == 0 && !fs::is_directory(program))
      return program.string();
  return {};
}

// Null is a struct of zeros.
Result<CompilerOptions> optionsOf(const heddle_compiler_options *asked) {
  heddle_compiler_options given = {};
  if (asked)
    HEDDLE_TRY(readVersioned("open compiler", *asked, offsetof(heddle_compiler_options, database), given));
  CompilerOptions options;
  constexpr uint32_t kKnown =
      HEDDLE_COMPILER_READ_ONLY | HEDDLE_COMPILER_ALLOW_FOREIGN_WRITERS | HEDDLE_COMPILER_FORCE_NETWORK;
  if ((given.flags & ~kKnown) != 0 || given.reserved != 0)
    return Status::unsupported("open compiler: flags: no such flag in " + std::to_string(given.flags) +
                               ", or the reserved field is not zero");
  if (given.workers < 0)
    return Status::invalidArgument("open compiler: workers: expected 0 or more, got " + std::to_string(given.workers));
  options.database = given.database ? given.database : "";
  options.isReadOnly = (given.flags & HEDDLE_COMPILER_READ_ONLY) != 0;
  options.allowForeignWriters = (given.flags & HEDDLE_COMPILER_ALLOW_FOREIGN_WRITERS) != 0;
  options.forceNetwork = (given.flags & HEDDLE_COMPILER_FORCE_NETWORK) != 0;
  options.program = given.program ? given.program : findProgram();
  options.shipped = given.shipped ? splitPaths(given.shipped) : shippedDatabases();
  options.workers = given.workers;
  return options;
}

Result<CallShape> shapeOf(const heddle_problem &given, DType inputs) {
  const Result<KindText> kind = KindText::parse(given.kind ? given.kind : "forward");
  if (!kind)
    return Status::unsupported("kernel for a problem: kind: " + kind.status().message());
  return CallShape{kind->kind, kind->elements(inputs), given.head_dim,
                   given.value_dim ? given.value_dim : given.head_dim};
}

/// Without the arguments of the pattern.
ProblemShape sizesOf(const heddle_problem &problem) {
  ProblemShape shape;
  shape.batch = problem.batch;
  shape.heads = problem.heads;
  shape.kvHeads = problem.kv_heads;
  shape.seqlenQ = problem.seqlen_q;
  shape.seqlenK = problem.seqlen_k;
  shape.qOrigin = problem.q_origin;
  shape.kOrigin = problem.k_origin;
  return shape;
}

Status countPairs(CompiledPattern &pattern, const heddle_problem &given, int64_t &pairs) {
  heddle_problem problem;
  HEDDLE_TRY(readVersioned("pairs", given, offsetof(heddle_problem, batch), problem));
  ProblemShape shape = sizesOf(problem);
  HEDDLE_ASSIGN(shape.parameters, pattern.parameters(problem.operands, problem.operand_count, /*needsLengths=*/true));
  HEDDLE_ASSIGN(pairs, pattern.keptPairs(shape));
  return {};
}

Result<KernelQuestion> questionOf(const heddle_device &device, const heddle_pattern &pattern,
                                  const heddle_problem &given) {
  const std::string who = "kernel for a problem: ";
  heddle_problem problem;
  HEDDLE_TRY(readVersioned("kernel for a problem", given, offsetof(heddle_problem, batch), problem));
  const std::optional<DType> dtype = dtypeOfCode(problem.dtype);
  if (!dtype || !traitsOf(*dtype).isComputed())
    return Status::invalidArgument(who + expectedElement(&ElementTraits::isComputed, problem.dtype));
  if (problem.head_dim < 1)
    return Status::invalidArgument(who + "head_dim: expected 1 or more, got " + std::to_string(problem.head_dim));
  KernelQuestion question{pattern.pattern, device.device, {}, {}, false};
  HEDDLE_ASSIGN(question.kernel.arch, archOf(device.device));
  HEDDLE_ASSIGN(static_cast<CallShape &>(question.kernel), shapeOf(problem, *dtype));
  question.hasSizes =
      problem.batch > 0 && problem.heads > 0 && problem.kv_heads > 0 && problem.seqlen_q > 0 && problem.seqlen_k > 0;
  const int64_t ofHead = queryRowsOf(problem.seqlen_q, problem.heads, problem.kv_heads, question.kernel);
  if (const int64_t rows = ProblemBucket::rowsOfDefault(ofHead, question.kernel);
      question.hasSizes && rows < ProblemBucket::mostRows(question.kernel))
    question.kernel.queryRows = rows;
  question.problem = sizesOf(problem);
  if (question.hasSizes) { // without them a size without a default needs no value
    std::optional<int64_t> whole;
    if (question.kernel.kind.hasPartsOfSequences())
      whole = std::max(problem.seqlen_q, problem.seqlen_k);
    HEDDLE_ASSIGN(question.problem.parameters,
                  pattern.pattern->parameters(problem.operands, problem.operand_count, /*needsLengths=*/false, whole));
  }
  return question;
}

/// Hands the kernel, or the reason, to the caller's function.
EmbeddedCompiler::Done calling(heddle_task_done done, void *user) {
  return [done, user](Result<FoundKernel> found) {
    if (!done)
      return;
    const Status status = found.status();
    done(user, heddle_status(status.code()), safeMessage(status.message()).c_str(),
         found ? new heddle_kernel{found.take()} : nullptr);
  };
}

/// The question whose kernel keeps the promise of HEDDLE_BATCH_INVARIANT. Hopper's kernels add sums of bytes to totals after
/// so many tiles of the keys that any row of a block keeps.
Status makeBatchInvariant(KernelQuestion &question) {
  const std::string who = "kernel for a problem: BATCH_INVARIANT: ";
  Kind &kind = question.kernel.kind;
  if (kind.base == KindBase::cascade)
    return Status::unsupported(who + "groups of kind cascade depend on the batch; kind decode serves its sequences");
  if (kind.find(Role::quantizedQ))
    return Status::unsupported(who + "kind " + kind.name() + " has a scale for many rows");
  if (traitsOf(question.kernel.elements.q).isScaled())
    return Status::unsupported(who + "rows of " + dtypeName(question.kernel.elements.q) +
                               " are summed as those beside them want it; take bf16 or fp16");
  if (kind.base == KindBase::decode)
    kind.base = KindBase::decodeInvariant;
  if (kind.isBackward())
    kind.isDeterministic = true;
  question.isBatchInvariant = true;
  return {};
}

Status findKernel(heddle_compiler &compiler, KernelQuestion question, uint32_t flags, heddle_kernel **kernel) {
  Result<FoundKernel> found = Status::unsupported(
      "kernel for a problem: flags: expected 0, ONLY_STORED or FIRST_SOON, and BATCH_INVARIANT, got " +
      std::to_string(flags));
  if ((flags & HEDDLE_BATCH_INVARIANT) != 0)
    HEDDLE_TRY(makeBatchInvariant(question));
  switch (flags & ~uint32_t(HEDDLE_BATCH_INVARIANT)) {
  case 0:
    found = compiler.compiler->best(question);
    break;
  case HEDDLE_ONLY_STORED:
    found = compiler.compiler->asStored(question);
    break;
  case HEDDLE_FIRST_SOON:
    found = compiler.compiler->soon(question);
    break;
  default:
    break;
  }
  HEDDLE_TRY(found.status());
  *kernel = new heddle_kernel{found.take()};
  return {};
}

Result<SearchOptions> searchOptionsOf(const heddle_tune_options *asked) {
  SearchOptions options;
  if (!asked)
    return options;
  heddle_tune_options given;
  HEDDLE_TRY(readVersioned("tune", *asked, offsetof(heddle_tune_options, budget_seconds), given));
  if (!std::isfinite(given.budget_seconds) || given.budget_seconds < 0)
    return Status::invalidArgument("tune: budget_seconds: expected 0 or more, got " +
                                   std::to_string(given.budget_seconds));
  if (given.verified_rows < 0)
    return Status::invalidArgument("tune: verified_rows: expected 0 or more, got " +
                                   std::to_string(given.verified_rows));
  if (given.budget_seconds > 0)
    options.budgetSeconds = given.budget_seconds;
  if (given.verified_rows > 0)
    options.verifiedRows = given.verified_rows;
  options.strategy = given.strategy ? given.strategy : "";
  return options;
}

Status checkHandles(const char *function, const heddle_compiler *compiler, const heddle_device *device,
                    const heddle_pattern *pattern) {
  HEDDLE_TRY(checkOpen(function, "compiler", compiler));
  HEDDLE_TRY(checkOpen(function, "device", device));
  return checkOpen(function, "pattern", pattern);
}

Status checkSearchable(const heddle_compiler &compiler, const KernelQuestion &question) {
  if (!question.hasSizes)
    return Status::invalidArgument("tune: batch, heads, kv_heads, seqlen_q and seqlen_k must all be given");
  const CallShape &shape = question.kernel;
  if (!shape.kind.walksPattern() || shape.kind.hasPages() || !shape.elements.areAlike() ||
      shape.elements.out != CallElements::outOf(shape.elements.q))
    return Status::unsupported("tune: kind: searches are for \"forward\" and the kinds of gradients, with out in the "
                               "type of q");
  HEDDLE_TRY(EmbeddedCompiler::checkGradients(question));
  if (compiler.compiler->isReadOnly())
    return Status::denied("tune: this compiler was opened for reading only, and a search needs a database to write to");
  return {};
}

} // namespace

extern "C" {

heddle_status heddle_compiler_open(const heddle_compiler_options *options, heddle_compiler **compiler) {
  return guarded([&]() -> Status {
    if (!compiler)
      return missing("open compiler", "compiler");
    HEDDLE_ASSIGN(CompilerOptions known, optionsOf(options));
    HEDDLE_ASSIGN(std::unique_ptr<EmbeddedCompiler> made, EmbeddedCompiler::open(known));
    *compiler = new heddle_compiler{std::move(made)};
    return {};
  });
}

void heddle_compiler_close(heddle_compiler *compiler) { closeHandle(compiler); }

heddle_status heddle_compiler_kernel(heddle_compiler *compiler, heddle_device *device, const heddle_pattern *pattern,
                                     const heddle_problem *problem, uint32_t flags, heddle_kernel **kernel) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkHandles("kernel for a problem", compiler, device, pattern));
    if (!problem || !kernel)
      return missing("kernel for a problem", problem ? "kernel" : "problem");
    HEDDLE_ASSIGN(KernelQuestion question, questionOf(*device, *pattern, *problem));
    return findKernel(*compiler, question, flags, kernel);
  });
}

heddle_status heddle_pattern_pairs(const heddle_pattern *pattern, const heddle_problem *problem, int64_t *pairs) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("pairs", "pattern", pattern));
    if (!problem || !pairs)
      return missing("pairs", problem ? "pairs" : "problem");
    int64_t counted = 0;
    HEDDLE_TRY(countPairs(*pattern->pattern, *problem, counted));
    *pairs = counted;
    return {};
  });
}

heddle_status heddle_compiler_compile(heddle_compiler *compiler, heddle_device *device, const heddle_pattern *pattern,
                                      const heddle_problem *problem, heddle_task_done done, void *user,
                                      heddle_task **task) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkHandles("compile", compiler, device, pattern));
    if (!problem || !task)
      return missing("compile", problem ? "task" : "problem");
    HEDDLE_ASSIGN(KernelQuestion question, questionOf(*device, *pattern, *problem));
    *task = new heddle_task{compiler->compiler->compileLater(std::move(question), calling(done, user))};
    return {};
  });
}

heddle_status heddle_compiler_tune(heddle_compiler *compiler, heddle_device *device, const heddle_pattern *pattern,
                                   const heddle_problem *problem, const heddle_tune_options *options,
                                   heddle_task_done done, void *user, heddle_task **task) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkHandles("tune", compiler, device, pattern));
    if (!problem || !task)
      return missing("tune", problem ? "task" : "problem");
    HEDDLE_ASSIGN(SearchOptions search, searchOptionsOf(options));
    HEDDLE_ASSIGN(KernelQuestion question, questionOf(*device, *pattern, *problem));
    HEDDLE_TRY(checkSearchable(*compiler, question));
    *task =
        new heddle_task{compiler->compiler->searchLater(std::move(question), std::move(search), calling(done, user))};
    return {};
  });
}

heddle_status heddle_task_wait(heddle_task *task, double seconds, int32_t *is_done) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("wait", "task", task));
    if (!is_done)
      return missing("wait", "is_done");
    if (std::isnan(seconds))
      return Status::invalidArgument("wait: seconds: expected a number, or a negative or infinite one to wait for "
                                     "ever, got NaN");
    *is_done = task->task->wait(seconds);
    return task->task->status();
  });
}

void heddle_task_cancel(heddle_task *task) {
  if (task && task->life.isOpen())
    task->task->cancel();
}

void heddle_task_close(heddle_task *task) { closeHandle(task); }

} // extern "C"
