#include "compiler/Session/ChooseKernel.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/PreparedPattern.h"

namespace heddle {

/// Of databases; without a match if nothing in them fits.
struct StoredKernel : ChosenKernel {
  bool isOfOthers = false; ///< for longer or shorter calls, which have another default
};

static Result<StoredKernel> lookUp(const KernelWanted &wanted, const StoreStack &stores, const Device &device,
                                   const KernelFamily &family) {
  WinnerKey key = winnerKey(wanted.file, wanted.shape, family, device.info().identity);
  HEDDLE_ASSIGN(StackLookup found, stores.lookup(LookupQuery(key, device.info().driverVersion)));
  if (found.match == MatchKind::none)
    return StoredKernel{};
  const std::string match = matchKindName(found.match);
  const bool isOfOthers = !ProblemBucket::areAsLong(key.queryRows, found.winner.queryRows);
  return StoredKernel{{std::move(found.record), match, "from " + found.path + ", match: " + match}, isOfOthers};
}

/// Why a default is compiled.
static std::string whyDefault(const StoreStack &stores, const StoredKernel &stored) {
  if (stores.isEmpty())
    return "there is no database";
  return (stored.isOfOthers ? "only kernels for longer or shorter calls in " : "no kernel in ") + stores.paths();
}

Result<ChosenKernel> chooseKernel(const KernelWanted &wanted, const StoreStack &stores, const Device &device) {
  HEDDLE_ASSIGN(PreparedPattern prepared, preparePattern(wanted.file, PassFunctions::ofAll, wanted.kernel.kind.walk()));
  const bool cutsBlocks = wanted.cutsBlocks && reliesOnBlocks(prepared); // as what is stored may
  if (cutsBlocks)
    prepared = withoutBlocks(std::move(prepared));
  StoredKernel stored;
  if (wanted.changes.empty() && !cutsBlocks) {
    HEDDLE_ASSIGN(stored, lookUp(wanted, stores, device, familyOf(prepared, wanted.kernel)));
    if (!stored.match.empty() && !stored.isOfOthers)
      return ChosenKernel(std::move(stored));
  }
  const auto known = [&](const std::string &contentKey) { return stores.kernel(contentKey); };
  Result<CompiledVariant> variant = compileVariant(prepared, wanted.kernel, wanted.changes, /*threads=*/0, known);
  if (stored.isOfOthers && (!variant || variant->record.contentKey == stored.record.contentKey))
    return ChosenKernel(std::move(stored));
  HEDDLE_TRY(variant.status());
  const std::string made = variant->wasKnown ? "compiled before, in " + stores.paths() : "compiled now";
  return ChosenKernel{std::move(variant->record), "compiled now",
                      made + ", " +
                          (wanted.changes.empty() ? "untuned default: " + whyDefault(stores, stored) : wanted.changes)};
}

} // namespace heddle
