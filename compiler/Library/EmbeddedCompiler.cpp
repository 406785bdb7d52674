#include "compiler/Library/EmbeddedCompiler.h"

#include "codegen/Config/KernelRequest.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Session/DatabasePaths.h"
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Session/Publish.h"
#include "compiler/Session/TuneSession.h"
#include "runtime/Core/Thrown.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <thread>

namespace heddle {
namespace {

/// Needs no analysis of the pattern, so that a warm start does none.
KernelFamily familyOf(const KernelQuestion &question) {
  return KernelFamily::of(question.pattern->info().digest, question.kernel, kGenerator);
}

/// The rows of the calls that a default is chosen for.
int64_t rowsBucket(const KernelQuestion &question) {
  return ProblemBucket::rowsBucket(ProblemBucket::rowsOfDefault(question.kernel.queryRows, question.kernel),
                                   question.kernel);
}

std::string textOf(const KernelFamily &family, const std::string &arch, int64_t rowsBucket) {
  return family.pattern + " " + family.kind + " " + dtypeName(family.dtype) + " " + std::to_string(family.headDim) +
         " " + std::to_string(family.valueDim) + " " + arch + " " + std::to_string(rowsBucket);
}

std::string textOf(const KernelQuestion &question) {
  return textOf(familyOf(question), question.kernel.archName(), rowsBucket(question));
}

/// A default that is to be replaced by a better one: a provisional one, or one that was chosen for calls of
/// other numbers of queries.
bool isProvisional(const KernelQuestion &question, const FoundKernel &found) {
  const bool isOfOthers = question.hasSizes && found.queryRows != rowsBucket(question);
  return found.match == MatchKind::untunedDefault && (isOfOthers || isProvisional(found.kernel.record()));
}

/// Rows are rescaled as the maxima of their own scores say, where a threshold and anchors ask those of a warp and of what is
/// masked in a tile: one by one beyond the threshold, or, in a family that does not tell them apart, at every tile. Tiles of
/// keys divide a launch's first key, a multiple of 256 (heddle_group_options::column_step).
std::string invariantValue(const std::string &field, const std::string &value, bool movesByRow) {
  constexpr std::pair<const char *, const char *> kInvariant[] = {
      {"split_last", "0"}, {"split_tiles", "0"}, {"long_split", "1"}, {"softmax", "2"}, {"rescale_threshold", "0"}};
  constexpr int64_t kFirstKeys = 256;
  for (const auto &[name, invariant] : kInvariant)
    if (field == name)
      return movesByRow && field == "rescale_threshold" ? value : invariant;
  return field == "block_n" && kFirstKeys % std::stoll(value) != 0 ? "64" : value;
}

/// Of a kernel, with fields by which bits of a row would depend on others as they are where these do not; empty: they are,
/// as those of a kind whose every kernel is like that always are.
std::string invariantConfig(const Kind &kind, const std::string &config) {
  if (kind.base == KindBase::decodeInvariant)
    return {};
  const bool movesByRow = config.find("softmax=") != std::string::npos;
  std::string changes;
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos)
      continue;
    const std::string field = line.substr(0, equals), value = line.substr(equals + 1);
    if (const std::string invariant = invariantValue(field, value, movesByRow); invariant != value)
      changes += field + "=" + invariant + "\n";
  }
  return changes.empty() ? changes : config + changes;
}

/// Without room for the registers that it takes another configuration has them.
Result<CompiledVariant> compileInvariant(const PreparedPattern &prepared, const KernelShape &shape,
                                         const std::string &changes) {
  Result<CompiledVariant> variant = compileVariant(prepared, shape, changes);
  if (variant || variant.status().code() != StatusCode::unsupported)
    return variant;
  return compileChangedDefault(prepared, shape, [&](const std::string &config) {
    const std::string invariant = invariantConfig(shape.kind, config);
    return invariant.empty() ? config : invariant;
  });
}

/// Nothing is stored, or what is cannot run here: it wants a newer driver.
bool isMissing(const Result<FoundKernel> &found) {
  const StatusCode code = found.status().code();
  return code == StatusCode::notFound || code == StatusCode::unsupported;
}

} // namespace

Result<std::unique_ptr<EmbeddedCompiler>> EmbeddedCompiler::open(const CompilerOptions &given) {
  std::unique_ptr<EmbeddedCompiler> made(new EmbeddedCompiler);
  CompilerOptions &options = made->options = given;
  if (options.database.empty())
    options.database = userDatabase();
  StoreOptions store;
  store.allowForeignWriters = options.allowForeignWriters;
  store.forceNetwork = options.forceNetwork;
  if (!options.isReadOnly) {
    store.mode = StoreMode::readWrite;
    HEDDLE_ASSIGN(made->own, openUserDatabase(options.database, store));
  }
  std::error_code ignored;
  store.mode = StoreMode::readOnly;
  if (made->own || std::filesystem::exists(options.database, ignored)) {
    HEDDLE_ASSIGN(Store reader, Store::open(options.database, store));
    made->finder.add(std::move(reader));
  }
  for (const std::string &path : options.shipped) {
    HEDDLE_ASSIGN(Store shipped, openShipped(path, options.allowForeignWriters));
    made->finder.add(std::move(shipped));
  }
  return made;
}

Status EmbeddedCompiler::checkGradients(const KernelQuestion &question) {
  if (question.kernel.kind.gradientsOf.empty())
    return {};
  HEDDLE_ASSIGN(const std::shared_ptr<const PreparedPattern> prepared,
                question.pattern->prepared(question.kernel.kind.walk()));
  return makeRequest(*prepared, question.kernel).validate();
}

Result<FoundKernel> EmbeddedCompiler::stored(const KernelQuestion &question) {
  WinnerKey key(familyOf(question), {-1, -1, -1, -1}, {});
  if (question.hasSizes) {
    HEDDLE_ASSIGN(static_cast<ProblemBucket &>(key),
                  question.pattern->bucket(question.problem, question.kernel, question.device.info().identity.smCount));
    static_cast<ExactProblem &>(key) = exactProblem(question.problem);
  }
  return finder.find(question.device, std::move(key));
}

Result<FoundKernel> EmbeddedCompiler::asStored(const KernelQuestion &question) {
  Result<FoundKernel> found = stored(question);
  if (!found || !question.isBatchInvariant ||
      invariantConfig(question.kernel.kind, found->kernel.record().config).empty())
    return found;
  return Status::notFound("kernel for a problem: in what is stored bits of a row depend on others: " +
                          found->kernel.record().config);
}

Result<FoundKernel> EmbeddedCompiler::best(const KernelQuestion &question) {
  Result<FoundKernel> found = stored(question);
  const bool isToBeMade = isMissing(found) || (found && isProvisional(question, *found));
  if (!isToBeMade)
    return serving(question, std::move(found));
  Result<FoundKernel> preferred = made(question, Made::preferred);
  return serving(question, preferred || !found ? std::move(preferred) : std::move(found));
}

// Another kernel later would have other bits, so one whose bits do not depend on the run, or on the placement of rows, is
// waited for.
Result<FoundKernel> EmbeddedCompiler::soon(const KernelQuestion &question) {
  if (question.kernel.kind.isDeterministic || question.isBatchInvariant)
    return best(question);
  return serving(question, soonest(question));
}

Result<FoundKernel> EmbeddedCompiler::soonest(const KernelQuestion &question) {
  Result<FoundKernel> found = stored(question);
  if (!isMissing(found) && !(found && isProvisional(question, *found)))
    return found;
  bool isBegun = false;
  if (std::optional<Result<FoundKernel>> preferred = kernels.ready(question.device, textOf(question), isBegun))
    return std::move(*preferred);
  if (!isBegun)
    tryToCompileLater(question);
  return found ? std::move(found) : made(question, Made::provisional);
}

Result<FoundKernel> EmbeddedCompiler::serving(const KernelQuestion &question, Result<FoundKernel> found) {
  if (!found)
    return found;
  const int64_t step = found->kernel.plan().serves.keyOriginStep;
  if (step && question.problem.kOrigin % step != 0)
    if (Result<FoundKernel> other = made(question, Made::anyKeyOrigin))
      found = std::move(other); // else the call says what it wants
  const std::string invariant =
      question.isBatchInvariant ? invariantConfig(question.kernel.kind, found->kernel.record().config) : std::string();
  return invariant.empty() ? std::move(found) : made(question, Made::invariant, invariant);
}

Result<FoundKernel> EmbeddedCompiler::made(const KernelQuestion &question, Made which, const std::string &changes) {
  static const std::map<Made, std::string> kinds = {{Made::preferred, ""},
                                                    {Made::provisional, " provisional"},
                                                    {Made::anyKeyOrigin, " any k_origin"},
                                                    {Made::invariant, " invariant "}};
  return kernels.kernel(question.device, textOf(question) + kinds.at(which) + changes,
                        [&] { return make(question, which, changes); });
}

KnownKernels EmbeddedCompiler::knownKernels() const {
  return [this](const std::string &contentKey) -> Result<KernelRecord> {
    Result<KernelRecord> known = Status::notFound("there is no database");
    if (own)
      known = own->kernel(contentKey);
    return known ? std::move(known) : Status::notFound(known.status().message()); // a database that cannot be read
  };
}

Result<KernelRecord> EmbeddedCompiler::make(const KernelQuestion &question, Made which, const std::string &changes) {
  HEDDLE_ASSIGN(std::shared_ptr<const PreparedPattern> prepared,
                question.pattern->prepared(question.kernel.kind.walk()));
  auto request = [&] { return makeRequest(*prepared, question.kernel); };
  Result<CompiledVariant> variant = which == Made::provisional ? compileProvisional(*prepared, request())
                                    : which == Made::anyKeyOrigin
                                        ? compileVariant(withoutBlocks(*prepared), question.kernel, "")
                                    : which == Made::invariant ? compileInvariant(*prepared, question.kernel, changes)
                                                               : compileVariant(*prepared, question.kernel, changes,
                                                                                /*threads=*/0, knownKernels());
  if (!variant && which == Made::provisional) // no default compiles as it is, but what comes behind it may
    variant = compileVariant(*prepared, question.kernel, "");
  HEDDLE_TRY(variant.status());
  if (own && (which == Made::preferred || which == Made::provisional))
    file(variant->record, *prepared, question, which);
  return std::move(variant->record);
}

void EmbeddedCompiler::file(KernelRecord &record, const PreparedPattern &prepared, const KernelQuestion &question,
                            Made which) {
  std::lock_guard<std::mutex> lock(filing);
  bool &isPreferredFiled = filed[textOf(record, deviceArch(record.kernelArch), rowsBucket(question))];
  if (which == Made::provisional && isPreferredFiled)
    return; // the other one was sooner
  isPreferredFiled = isPreferredFiled || which == Made::preferred;
  Status status = publishDefault(*own, record, question.kernel.queryRows);
  if (status.isOk() && question.pattern->wholes().empty()) // a part is called as its whole, whose the name is
    status = publishName(*own, prepared, prepared.name);
  if (!status.isOk())
    record.note += (record.note.empty() ? "" : "; ") + ("not filed: " + status.message());
  finder.distrust();
}

std::shared_ptr<Task> EmbeddedCompiler::compileLater(KernelQuestion question, Done done) {
  return compilations.add([this, question = std::move(question), done = std::move(done)](const Task &task) {
    Result<FoundKernel> found = task.isCancelled() ? Result<FoundKernel>(Status::unavailable("compile: cancelled"))
                                                   : withoutExceptions([&] { return best(question); });
    Status status = found.status();
    done(std::move(found));
    return status;
  });
}

void EmbeddedCompiler::tryToCompileLater(const KernelQuestion &question) {
  try {
    compileLater(question, [](Result<FoundKernel>) {});
  } catch (const std::exception &) { // no thread for it: the first kernel serves on
  }
}

std::shared_ptr<Task> EmbeddedCompiler::searchLater(KernelQuestion question, SearchOptions search, Done done) {
  return searches.add(
      [this, question = std::move(question), search = std::move(search), done = std::move(done)](const Task &task) {
        Result<FoundKernel> found = task.isCancelled()
                                        ? Result<FoundKernel>(Status::unavailable("tune: cancelled"))
                                        : withoutExceptions([&] { return this->search(question, search, task); });
        Status status = found.status();
        done(std::move(found));
        return status;
      });
}

Result<FoundKernel> EmbeddedCompiler::search(const KernelQuestion &question, const SearchOptions &search,
                                             const Task &task) {
  HEDDLE_ASSIGN(std::unique_ptr<PatternFile> file, question.pattern->copyForThread());
  TuneRequest request;
  request.shape = question.problem;
  HEDDLE_TRY(checkShape(*file, request.shape));
  HEDDLE_TRY(bindOperands(*file, {{}, {}, OperandSources::Missing::make}, request.shape));
  static_cast<CallShape &>(request) = question.kernel;
  request.verifiedRows = search.verifiedRows;
  request.measureProgram = options.program;
  request.strategy = search.strategy.empty() ? kTuneStrategy : search.strategy;
  request.options.budgetSeconds = search.budgetSeconds;
  const int processors = int(std::max(1u, std::thread::hardware_concurrency()));
  request.options.workers = options.workers > 0 ? options.workers : std::max(1, processors - 1);
  request.options.ahead = 2 * request.options.workers;
  request.options.cancel = &task.isCancelled();
  std::vector<Store> shipped;
  for (const std::string &path : options.shipped) {
    HEDDLE_ASSIGN(Store store, openShipped(path, options.allowForeignWriters));
    shipped.push_back(std::move(store));
  }
  for (const Store &store : shipped)
    request.shipped.push_back(&store);
  HEDDLE_ASSIGN(TuneOutcome outcome, tune(*file, request, question.device, *own));
  finder.distrust();
  if (!outcome.record)
    return Status::unavailable(
        task.isCancelled()
            ? "tune: cancelled before a kernel was found"
            : "tune: no configuration gave a correct, measured kernel within the budget; `heddle cache ls "
              "--trials` shows why each failed");
  HEDDLE_ASSIGN(Kernel kernel, Kernel::load(question.device, *outcome.record));
  return FoundKernel{{MatchKind::exact, outcome.medianUs}, std::move(kernel)};
}

} // namespace heddle
