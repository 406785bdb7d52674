#include "compiler/Session/PackSession.h"
#include "codegen/Target/FindArch.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Session/Publish.h"
#include "runtime/Core/ParallelFor.h"

#include <map>
#include <mutex>
#include <tuple>

namespace heddle {
namespace {

/// The patterns of a plan, each analysed once for the kinds that walk it alike.
class PreparedPatterns {
public:
  Status add(const PackItem &item) {
    if (known.count(keyOf(item)) && item.pattern.gradientsOf.empty())
      return {};
    HEDDLE_ASSIGN(std::unique_ptr<PatternFile> file, PatternFile::load(item.pattern.file, item.pattern.pattern));
    Kind &kind = kinds[item.str()] = item.kind;
    HEDDLE_ASSIGN(kind.gradientsOf, gradientArguments(*file, item.pattern.gradientsOf, kind));
    if (known.count(keyOf(item)))
      return {};
    HEDDLE_ASSIGN(PreparedPattern prepared, preparePattern(*file, PassFunctions::ofAll, item.kind.walk()));
    known.emplace(keyOf(item), std::move(prepared));
    return {};
  }
  /// With the gradients of arguments that it asks for.
  Kind kindOf(const PackItem &item) const {
    const auto found = kinds.find(item.str());
    return found == kinds.end() ? item.kind : found->second;
  }
  const PreparedPattern &of(const PackItem &item) const { return known.at(keyOf(item)); }

private:
  using Key = std::tuple<std::string, std::string, Walk>;
  static Key keyOf(const PackItem &item) { return {item.pattern.file, item.pattern.pattern, item.kind.walk()}; }
  std::map<Key, PreparedPattern> known;
  std::map<std::string, Kind> kinds; ///< by item, where it asks for gradients of arguments
};

class Packing {
public:
  Packing(Store &store, std::vector<PackItem> items, const PackOptions &options)
      : store(store), items(std::move(items)), options(options), kernels(this->items.size()) {}

  Result<std::vector<PackedKernel>> run() {
    for (const PackItem &item : items) {
      HEDDLE_TRY(findGpuArch(item.arch).status());
      HEDDLE_TRY(patterns.add(item));
    }
    const int64_t count = int64_t(items.size());
    parallelFor(count, threadCountFor(count, std::max(1, options.workers)),
                [this](int, int64_t item) { work(size_t(item)); });
    HEDDLE_TRY(failure);
    return std::move(kernels);
  }

private:
  void work(size_t index) {
    if (hasFailed)
      return;
    const Status status = pack(index);
    const std::lock_guard<std::mutex> lock(mutex);
    if (!status.isOk() && !hasFailed.exchange(true))
      failure = Status(status.code(), items[index].str() + ": " + status.message());
    if (status.isOk() && options.progress)
      options.progress(++done, items.size(), items[index]);
  }

  Status pack(size_t index) {
    const PackItem &item = items[index];
    const PreparedPattern &prepared = patterns.of(item);
    KernelShape shape;
    shape.kind = patterns.kindOf(item);
    shape.arch = *findGpuArch(item.arch);
    shape.elements = CallElements(item.dtype, CallElements::outOf(item.dtype), item.precision);
    shape.headDim = item.dims.head, shape.valueDim = item.dims.value;
    HEDDLE_ASSIGN(CompiledVariant variant, compileVariant(prepared, shape, "", /*threads=*/1));
    HEDDLE_TRY(publishDefault(store, variant.record));
    HEDDLE_TRY(packShorter(prepared, shape));
    HEDDLE_TRY(publishName(store, prepared, item.pattern.name.empty() ? prepared.name : item.pattern.name));
    PackedKernel &kernel = kernels[index];
    kernel.item = item;
    kernel.cubinBytes = int64_t(variant.record.cubin.size()), kernel.ptxBytes = int64_t(variant.record.ptx.size());
    kernel.record = std::move(variant.record);
    kernel.record.cubin.clear(), kernel.record.ptx.clear();
    return {};
  }

  /// The default for calls of fewer queries than that for any number, of no few, where these differ.
  Status packShorter(const PreparedPattern &prepared, KernelShape shape) {
    shape.queryRows = ProblemBucket::kManyRows;
    if (shape.queryRows == ProblemBucket::mostRows(shape))
      return {};
    const auto known = [this](const std::string &contentKey) { return store.kernel(contentKey); };
    HEDDLE_ASSIGN(const CompiledVariant variant, compileVariant(prepared, shape, "", /*threads=*/1, known));
    return publishDefault(store, variant.record, shape.queryRows);
  }

  Store &store;
  const std::vector<PackItem> items;
  const PackOptions &options;
  PreparedPatterns patterns;
  std::vector<PackedKernel> kernels;
  std::atomic<bool> hasFailed{false};
  std::mutex mutex; ///< of what follows
  Status failure;
  size_t done = 0;
};

} // namespace

Result<std::vector<PackedKernel>> packInto(Store &store, const WorkPlan &plan, const PackOptions &options) {
  return Packing(store, plan.packItems(), options).run();
}

} // namespace heddle
