//===- Publish.cpp - kernels into the store -------------------------------===//
#include "compiler/Driver/Publish.h"

namespace heddle {

/// The architecture that a GPU reports: without the letter of exact and family targets.
static std::string deviceArch(std::string arch) {
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

Status publishName(Store &store, const PreparedPattern &prepared, const std::string &name) {
  NameRecord row;
  row.name = name;
  row.pattern = prepared.digest;
  for (const std::string &parameter : prepared.parameterNames)
    row.parameters += (row.parameters.empty() ? "" : " ") + parameter;
  return store.setName(row);
}

} // namespace heddle
