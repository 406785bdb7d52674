// Owns the translation of handles, codes and messages. Every exported function catches everything.
#include "runtime/Api/Handles.h"
#include "runtime/Core/QueryRows.h"
#include "runtime/Core/Tables.h"

#include <algorithm>
#include <cstddef>

using namespace heddle;

static_assert(int(StatusCode::ok) == HEDDLE_OK && int(StatusCode::internal) == HEDDLE_INTERNAL,
              "codes are the same numbers");
static_assert(int(MatchKind::none) == HEDDLE_MATCH_NONE, "matches are the same numbers");

std::string &heddle::lastMessage() {
  thread_local std::string message;
  return message;
}

namespace {

Result<Store> openStore(const char *path, uint32_t flags) {
  if ((flags & ~uint32_t(HEDDLE_OPEN_ALLOW_FOREIGN_WRITERS | HEDDLE_OPEN_IMMUTABLE)) != 0)
    return Status::unsupported("open store: flags: no such flag in " + std::to_string(flags));
  StoreOptions options;
  options.allowForeignWriters = (flags & HEDDLE_OPEN_ALLOW_FOREIGN_WRITERS) != 0;
  options.mode = (flags & HEDDLE_OPEN_IMMUTABLE) != 0 ? StoreMode::immutable : StoreMode::readOnly;
  return Store::open(path, options);
}

// The pattern as it was given.
Result<LookupQuery> makeQuery(const DeviceInfo &info, const heddle_kernel_query &given) {
  heddle_kernel_query query;
  HEDDLE_TRY(readVersioned("find kernel", given, offsetof(heddle_kernel_query, batch), query));
  const std::optional<DType> dtype = dtypeOfCode(query.dtype);
  if (!dtype)
    return Status::invalidArgument("find kernel: " + expectedElement(&ElementTraits::isOfCalls, query.dtype));
  if (!query.pattern)
    return missing("find kernel", "pattern");
  LookupQuery wanted;
  wanted.pattern = query.pattern;
  wanted.kind = query.kind ? query.kind : "forward";
  wanted.dtype = *dtype;
  CallShape call;
  if (const Result<KindText> text = KindText::parse(wanted.kind)) {
    call.kind = text->kind, call.elements = text->elements(*dtype);
    wanted.kind = KindText::of(call.kind, call.elements).str();
  }
  wanted.headDim = query.head_dim;
  wanted.valueDim = query.value_dim;
  constexpr int64_t kTile = ProblemBucket::kTile;
  const int64_t rows = std::clamp<int64_t>(query.seqlen_q, 0, INT32_MAX), tiles = (rows + kTile - 1) / kTile;
  int64_t heads = std::clamp<int64_t>(query.heads, 0, 1 << 20) * std::clamp<int64_t>(query.batch, 0, 1 << 20);
  wanted.workPerSm = tiles * heads > 0 ? sizeBucket(tiles * heads, info.identity.smCount) : -1;
  wanted.tilesPerRow = query.tiles_per_row > 0 ? sizeBucket(query.tiles_per_row, 1) : -1;
  wanted.gqaRatio = query.heads > 0 && query.kv_heads > 0 ? query.heads / query.kv_heads : -1;
  const int64_t ofHead = queryRowsOf(rows, query.heads, query.kv_heads, call);
  wanted.queryRows = rows > 0 ? ProblemBucket::rowsBucket(ofHead, call) : -1;
  static_cast<ExactProblem &>(wanted) = {query.batch, query.heads, query.kv_heads, rows};
  return wanted;
}

Status findKernel(KernelFinder &finder, const Device &device, const heddle_kernel_query &query,
                  heddle_kernel **kernel) {
  HEDDLE_ASSIGN(LookupQuery wanted, makeQuery(device.info(), query));
  HEDDLE_ASSIGN(FoundKernel found, finder.find(device, std::move(wanted)));
  *kernel = new heddle_kernel{std::move(found)};
  return {};
}

} // namespace

extern "C" {

const char *heddle_version(void) { return HEDDLE_VERSION; }

const char *heddle_tables(void) { return tablesText().c_str(); }

const char *heddle_status_name(heddle_status status) { return statusCodeName(StatusCode(status)); }

const char *heddle_last_message(void) { return lastMessage().c_str(); }

heddle_status heddle_store_open(const char *path, uint32_t flags, heddle_store **store) {
  return guarded([&]() -> Status {
    if (!path || !store)
      return missing("open store", path ? "store" : "path");
    HEDDLE_ASSIGN(Store opened, openStore(path, flags));
    auto finder = std::make_unique<KernelFinder>();
    finder->add(std::move(opened));
    *store = new heddle_store{std::move(finder)};
    return {};
  });
}

heddle_status heddle_store_add(heddle_store *store, const char *path, uint32_t flags) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("add store", "store", store));
    if (!path)
      return missing("add store", "path");
    HEDDLE_ASSIGN(Store opened, openStore(path, flags));
    store->finder->add(std::move(opened));
    return {};
  });
}

void heddle_store_close(heddle_store *store) { closeHandle(store); }

heddle_status heddle_device_open(int32_t ordinal, heddle_device **device) {
  return guarded([&]() -> Status {
    if (!device)
      return missing("open device", "device");
    HEDDLE_ASSIGN(Device opened, Device::open(ordinal));
    *device = new heddle_device{std::move(opened)};
    return {};
  });
}

void heddle_device_close(heddle_device *device) { closeHandle(device); }

heddle_status heddle_kernel_find(heddle_store *store, heddle_device *device, const heddle_kernel_query *query,
                                 heddle_kernel **kernel) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("find kernel", "store", store));
    HEDDLE_TRY(checkOpen("find kernel", "device", device));
    if (!query || !kernel)
      return missing("find kernel", query ? "kernel" : "query");
    return findKernel(*store->finder, device->device, *query, kernel);
  });
}

heddle_status heddle_kernel_get_info(const heddle_kernel *kernel, heddle_kernel_info *info) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("kernel info", "kernel", kernel));
    if (!info)
      return missing("kernel info", "info");
    const KernelRecord &record = kernel->found.kernel.record();
    const heddle_kernel_info known = {sizeof(known),
                                      int32_t(kernel->found.match),
                                      record.contentKey.c_str(),
                                      record.kernelArch.c_str(),
                                      record.generator.c_str(),
                                      record.config.c_str(),
                                      record.note.c_str(),
                                      record.registers,
                                      record.spillBytes,
                                      record.sharedBytes,
                                      kernel->found.kernel.plan().paramCount(),
                                      kernel->found.medianUs};
    return writeVersioned("kernel info", known, offsetof(heddle_kernel_info, content_key), *info);
  });
}

heddle_status heddle_kernel_workspace(const heddle_kernel *kernel, const heddle_attention_args *args, uint64_t *bytes) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("workspace", "kernel", kernel));
    if (!args || !bytes)
      return missing("workspace", args ? "bytes" : "args");
    HEDDLE_ASSIGN(int64_t needed, kernel->found.kernel.workspaceBytes(*args));
    *bytes = uint64_t(needed);
    return {};
  });
}

heddle_status heddle_kernel_launch(const heddle_kernel *kernel, void *stream, const heddle_attention_args *args) {
  return guardedLaunch([&]() -> Status {
    HEDDLE_TRY(checkOpen("launch", "kernel", kernel));
    if (!args)
      return missing("launch", "args");
    return kernel->found.kernel.launch(static_cast<cuda::Stream>(stream), *args);
  });
}

void heddle_kernel_close(heddle_kernel *kernel) { closeHandle(kernel); }

heddle_status heddle_prepare(const heddle_kernel *kernel, const heddle_attention_args *args,
                             heddle_prepared **prepared) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("prepare", "kernel", kernel));
    if (!args || !prepared)
      return missing("prepare", args ? "prepared" : "args");
    HEDDLE_ASSIGN(PreparedLaunch launch, kernel->found.kernel.prepare(*args));
    *prepared = new heddle_prepared{std::move(launch)};
    return {};
  });
}

heddle_status heddle_prepared_launch(const heddle_prepared *prepared, void *stream) {
  return guardedLaunch([&]() -> Status {
    HEDDLE_TRY(checkOpen("launch", "prepared", prepared));
    return prepared->launch.launch(static_cast<cuda::Stream>(stream));
  });
}

void heddle_prepared_close(heddle_prepared *prepared) { closeHandle(prepared); }

} // extern "C"
