//===- Publish.cpp - kernels into the store -------------------------------===//
#include "compiler/Driver/Publish.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Skeleton.h"
#include "compiler/Driver/PreparedPattern.h"

namespace heddle {

std::string deviceArch(std::string arch) {
  while (!arch.empty() && (arch.back() == 'a' || arch.back() == 'f'))
    arch.pop_back();
  return arch;
}

Status publishDefault(Store &store, const KernelRecord &record) {
  DeviceIdentity device;
  device.arch = deviceArch(record.kernelArch);
  Winner winner;
  static_cast<WinnerKey &>(winner) = WinnerKey(record, ProblemBucket(), device);
  winner.contentKey = record.contentKey;
  return store.publish(record, winner);
}

Status serveMeanwhile(Store &store, const PreparedPattern &prepared, const KernelRequest &request, const LookupQuery &wanted,
                      const std::string &name) {
  HEDDLE_ASSIGN(StoreLookup found, store.lookup(wanted));
  if (found.match != MatchKind::none)
    return {};
  const std::vector<const Skeleton *> &all = skeletons();
  for (auto skeleton = all.rbegin(); skeleton != all.rend(); ++skeleton) {
    if (!(*skeleton)->appliesTo(request).isOk())
      continue;
    auto variant = compileVariant(prepared, request, (*skeleton)->defaultConfig(request));
    if (!variant)
      continue;
    HEDDLE_TRY(publishDefault(store, variant->record));
    return publishName(store, prepared, name);
  }
  return {};
}

Status publishName(Store &store, const PreparedPattern &prepared, const std::string &name) {
  NameRecord row;
  row.name = name;
  row.pattern = prepared.digest;
  for (const std::string &parameter : prepared.parameterNames)
    row.parameters += (row.parameters.empty() ? "" : " ") + parameter;
  return store.setName(row);
}

} // namespace heddle
