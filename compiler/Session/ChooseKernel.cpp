#include "compiler/Session/ChooseKernel.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/PreparedPattern.h"

namespace heddle {

/// The winner of the databases, or an empty record if nothing in them fits.
static Result<ChosenKernel> lookUp(const KernelWanted &wanted, const StoreStack &stores, const Device &device,
                                   const KernelFamily &family) {
  WinnerKey key = winnerKey(wanted.file, wanted.shape, family, device.info().identity);
  HEDDLE_ASSIGN(StackLookup found, stores.lookup(LookupQuery(key, device.info().driverVersion)));
  if (found.match == MatchKind::none)
    return ChosenKernel{};
  const std::string match = matchKindName(found.match);
  return ChosenKernel{std::move(found.record), match, "from " + found.path + ", match: " + match};
}

Result<ChosenKernel> chooseKernel(const KernelWanted &wanted, const StoreStack &stores, const Device &device) {
  HEDDLE_ASSIGN(PreparedPattern prepared, preparePattern(wanted.file, PassFunctions::ofAll, wanted.kernel.kind.walk()));
  const bool cutsBlocks = wanted.cutsBlocks && reliesOnBlocks(prepared); // as what is stored may
  if (cutsBlocks)
    prepared = withoutBlocks(std::move(prepared));
  if (wanted.changes.empty() && !cutsBlocks) {
    HEDDLE_ASSIGN(ChosenKernel stored, lookUp(wanted, stores, device, familyOf(prepared, wanted.kernel)));
    if (!stored.match.empty())
      return stored;
  }
  const auto known = [&](const std::string &contentKey) { return stores.kernel(contentKey); };
  HEDDLE_ASSIGN(CompiledVariant variant, compileVariant(prepared, wanted.kernel, wanted.changes, /*threads=*/0, known));
  const std::string made = variant.wasKnown ? "compiled before, in " + stores.paths() : "compiled now";
  if (!wanted.changes.empty())
    return ChosenKernel{std::move(variant.record), "compiled now", made + ", " + wanted.changes};
  return ChosenKernel{
      std::move(variant.record), "compiled now",
      made + ", untuned default: " + (stores.isEmpty() ? "there is no database" : "no kernel in " + stores.paths())};
}

} // namespace heddle
