#include "compiler/Session/Publish.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "compiler/Session/PreparedPattern.h"

namespace heddle {

std::string deviceArch(std::string arch) {
  while (!arch.empty() && (arch.back() == 'a' || arch.back() == 'f'))
    arch.pop_back();
  return arch;
}

Status publishDefault(Store &store, const KernelRecord &record, int64_t queries) {
  DeviceIdentity device;
  device.arch = deviceArch(record.kernelArch);
  Winner winner;
  HEDDLE_ASSIGN(const CallShape call, record.shape());
  ProblemBucket bucket;
  bucket.queryRows = ProblemBucket::rowsBucket(ProblemBucket::rowsOfDefault(queries, call), call);
  static_cast<WinnerKey &>(winner) = WinnerKey(record, bucket, device);
  winner.contentKey = record.contentKey;
  return store.publish(record, winner);
}

static const char *const kProvisionalNote = "provisional until the default for this GPU is compiled";
static const char *const kFormerNote = "stopgap until the default"; // in databases of versions up to 0.6

bool isProvisional(const KernelRecord &record) {
  return record.note.find(kProvisionalNote) != std::string::npos || record.note.find(kFormerNote) != std::string::npos;
}

Result<CompiledVariant> compileProvisional(const PreparedPattern &prepared, const KernelRequest &request) {
  HEDDLE_ASSIGN(const Skeleton *preferred, chooseSkeleton(request));
  const std::vector<const Skeleton *> all = skeletonsOf(request.kind);
  Status refused;
  for (auto skeleton = all.rbegin(); skeleton != all.rend(); ++skeleton) {
    if (!(*skeleton)->appliesTo(request).isOk())
      continue;
    auto variant = compileVariant(prepared, request, (*skeleton)->defaultConfig(request));
    if (!variant) {
      refused = variant.status();
      continue;
    }
    std::string &note = variant->record.note;
    if (*skeleton != preferred)
      note += (note.empty() ? "" : "; ") + std::string(kProvisionalNote);
    return variant;
  }
  return refused;
}

Status publishProvisional(Store &store, const PreparedPattern &prepared, const KernelRequest &request,
                          const LookupQuery &wanted, const std::string &name) {
  HEDDLE_ASSIGN(StoreLookup found, store.lookup(wanted));
  if (found.match != MatchKind::none)
    return {};
  auto variant = compileProvisional(prepared, request);
  if (!variant)
    return {};
  HEDDLE_TRY(publishDefault(store, variant->record, request.balance.queries));
  return publishName(store, prepared, name);
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
