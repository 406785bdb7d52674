#include "runtime/Api/KernelFinder.h"
#include "runtime/Core/DriftWatch.h"

namespace heddle {
namespace {

// Questions are bounded by the buckets, but where several problems of one have winners, and for callers that make up
// patterns or dims.
constexpr size_t kMostAnswers = 1024;

template <class... Numbers> void appendNumbers(std::string &text, Numbers... given) {
  const int64_t numbers[] = {int64_t(given)...};
  text.append(reinterpret_cast<const char *>(numbers), sizeof(numbers));
}

// What tells questions of buckets apart: of the device, which one it is.
std::string bucketText(const Device &device, const LookupQuery &query) {
  std::string text;
  text.reserve(512);
  for (const std::string *word : {&query.pattern, &query.kind, &query.generator})
    text.append(*word).push_back('\0');
  appendNumbers(text, query.dtype, query.headDim, query.valueDim, query.workPerSm, query.tilesPerRow, query.gqaRatio,
                query.queryRows, reinterpret_cast<uintptr_t>(device.state().get()));
  return text;
}

// And those of one bucket.
std::string problemText(std::string text, const ExactProblem &problem) {
  appendNumbers(text, problem.batch, problem.heads, problem.kvHeads, problem.seqlenQ, problem.seqlenK, problem.qOrigin,
                problem.kOrigin);
  return text.append(problem.arguments);
}

// What makes a kernel of the kind.
std::string howToMake(const std::string &kind) {
  const Result<KindText> text = KindText::parse(kind);
  if (!text)
    return text.status().message();
  if (!text->kind.isBackward())
    return "compile or tune the pattern for it";
  const std::string name = text->kind.name();
  return "`heddle compile --" + (name == "backward" ? name : "kind=" + name) + " " +
         (text->kind.gradientsOf.empty() ? "" : "--gradients-of=NAME ") + "--db=FILE` makes one";
}

// The digest that a name leads to; text that is no name is taken for a digest.
Result<std::string> resolvePattern(const StoreStack &stores, const std::string &pattern) {
  Result<NameRecord> named = stores.findName(pattern);
  if (named)
    return named->pattern;
  bool isDigest = pattern.size() == 64 && pattern.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (isDigest && named.status().code() == StatusCode::notFound)
    return pattern;
  return named.status();
}

// The refusal of a kernel that only wants a newer driver.
Status refuseNewer(const StoreStack &stores, const Device &device, LookupQuery query) {
  query.driverVersion = 0;
  HEDDLE_ASSIGN(StackLookup newer, stores.lookup(query));
  return newer.match == MatchKind::none ? Status() : Kernel::load(device, newer.record).status();
}

} // namespace

void KernelFinder::add(Store store) {
  stores.add(std::move(store));
  answers.clear();
  trustedUntil = {};
}

Result<FoundKernel> KernelFinder::find(const Device &device, LookupQuery query) {
  const std::string ofBucket = bucketText(device, query), ofProblem = problemText(ofBucket, query);
  uint64_t times = 0;
  for (const std::string *question : {&ofBucket, &ofProblem})
    if (std::optional<FoundKernel> found = remembered(device, *question, times)) {
      found->kernel.row().found[int(found->match)].add();
      return std::move(*found);
    }
  bool isForBucket = false;
  Result<FoundKernel> asked = ask(device, std::move(query), isForBucket);
  if (asked.status().code() == StatusCode::notFound)
    Counters::get().notFound.add();
  HEDDLE_ASSIGN(FoundKernel found, std::move(asked));
  found.kernel.row().found[int(found.match)].add();
  remember(isForBucket ? ofBucket : ofProblem, found, times);
  return found;
}

std::optional<FoundKernel> KernelFinder::remembered(const Device &device, const std::string &question,
                                                    uint64_t &times) {
  std::lock_guard<std::mutex> lock(mutex);
  if (const auto now = std::chrono::steady_clock::now(); now >= trustedUntil)
    renewTrust(now);
  times = timesForgotten;
  auto answer = answers.find(question);
  if (answer == answers.end())
    return std::nullopt;
  std::optional<Kernel> kernel = answer->second.kernel.lock();
  if (!kernel || kernel->device().state() != device.state()) // closed, or of a device that was
    return std::nullopt;
  return FoundKernel{answer->second.finding, std::move(*kernel)};
}

void KernelFinder::remember(const std::string &question, const FoundKernel &found, uint64_t times) {
  std::lock_guard<std::mutex> lock(mutex);
  if (times != timesForgotten)
    return;
  if (answers.size() >= kMostAnswers)
    answers.clear();
  answers.insert_or_assign(question, Answer{found, WeakKernel(found.kernel)});
}

void KernelFinder::distrust() {
  std::lock_guard<std::mutex> lock(mutex);
  trustedUntil = {};
}

void KernelFinder::renewTrust(std::chrono::steady_clock::time_point now) {
  Result<std::vector<int64_t>> current = stores.versions();
  if (!current || *current != versions) {
    answers.clear();
    ++timesForgotten;
  }
  versions = current ? current.take() : std::vector<int64_t>();
  trustedUntil = now + kTrustedFor;
}

Result<FoundKernel> KernelFinder::ask(const Device &device, LookupQuery query, bool &isForBucket) const {
  const std::string asked = query.pattern;
  HEDDLE_ASSIGN(query.pattern, resolvePattern(stores, asked));
  static_cast<DeviceIdentity &>(query) = device.info().identity;
  query.driverVersion = device.info().driverVersion;
  HEDDLE_ASSIGN(StackLookup found, stores.lookup(query));
  if (found.match == MatchKind::none)
    HEDDLE_TRY(refuseNewer(stores, device, query));
  if (found.match == MatchKind::none)
    return Status::notFound("find kernel: store " + stores.paths() + " has no kernel for pattern '" + asked + "' " +
                            query.kind + " " + dtypeName(query.dtype) + " head_dim=" + std::to_string(query.headDim) +
                            " value_dim=" + std::to_string(query.valueDim) + " that runs on " + query.arch + "; " +
                            howToMake(query.kind));
  isForBucket = found.isForBucket;
  HEDDLE_ASSIGN(Kernel loaded, Kernel::load(device, found.record));
  if (found.match == MatchKind::exact && found.winner.isTuned)
    DriftWatch::add(loaded.row(), found.winner, found.winner.medianUs);
  return FoundKernel{{found.match, found.winner.medianUs, found.winner.queryRows}, std::move(loaded)};
}

} // namespace heddle
