#include "compiler/Library/MadeKernels.h"

#include "runtime/Core/Thrown.h"

#include <chrono>

namespace heddle {
namespace {

int64_t bytesOf(const Result<KernelRecord> &record) {
  if (!record)
    return int64_t(record.status().message().size()) + 1;
  int64_t bytes = sizeof(KernelRecord);
  KernelRecord::fields([&](const char *, auto member) {
    if constexpr (std::is_same_v<decltype((*record).*member), const std::string &>)
      bytes += int64_t(((*record).*member).size());
  });
  return bytes;
}

std::string placeOf(const Device &device, const std::string &key) {
  return std::to_string(reinterpret_cast<uintptr_t>(device.state().get())) + " " + key;
}

} // namespace

Result<FoundKernel> MadeKernels::kernel(const Device &device, const std::string &key, const Make &make) {
  std::promise<Record> promise;
  std::shared_future<Record> others;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (std::optional<FoundKernel> known = open(device, key))
      return std::move(*known);
    if (const Entry *entry = find(key))
      others = entry->record;
    else
      entries[key].record = promise.get_future().share();
  }
  if (others.valid())
    return load(device, key, *others.get());
  const Record record = std::make_shared<const Result<KernelRecord>>(withoutExceptions(make));
  promise.set_value(record);
  {
    std::lock_guard<std::mutex> lock(mutex);
    keep(key, record);
  }
  return load(device, key, *record);
}

std::optional<Result<FoundKernel>> MadeKernels::ready(const Device &device, const std::string &key, bool &isBegun) {
  std::shared_future<Record> record;
  {
    std::lock_guard<std::mutex> lock(mutex);
    std::optional<FoundKernel> known = open(device, key);
    isBegun = known.has_value();
    if (known)
      return std::move(*known);
    if (const Entry *entry = find(key))
      record = entry->record;
  }
  isBegun = record.valid();
  if (!isBegun || record.wait_for(std::chrono::seconds(0)) != std::future_status::ready || !record.get()->isOk())
    return std::nullopt;
  return load(device, key, *record.get());
}

int64_t MadeKernels::heldBytes() const {
  std::lock_guard<std::mutex> lock(mutex);
  return held;
}

Result<FoundKernel> MadeKernels::load(const Device &device, const std::string &key,
                                      const Result<KernelRecord> &record) {
  HEDDLE_TRY(record.status());
  HEDDLE_ASSIGN(Kernel kernel, Kernel::load(device, *record));
  std::lock_guard<std::mutex> lock(mutex);
  for (auto other = loaded.begin(); other != loaded.end();)
    other = other->second.lock() ? std::next(other) : loaded.erase(other);
  loaded.insert_or_assign(placeOf(device, key), WeakKernel(kernel));
  return FoundKernel{{MatchKind::untunedDefault}, std::move(kernel)};
}

std::optional<FoundKernel> MadeKernels::open(const Device &device, const std::string &key) {
  const auto known = loaded.find(placeOf(device, key));
  std::optional<Kernel> kernel = known == loaded.end() ? std::nullopt : known->second.lock();
  if (!kernel || kernel->device().state() != device.state()) // of a device that was
    return std::nullopt;
  return FoundKernel{{MatchKind::untunedDefault}, std::move(*kernel)};
}

MadeKernels::Entry *MadeKernels::find(const std::string &key) {
  const auto known = entries.find(key);
  if (known == entries.end())
    return nullptr;
  known->second.lastUse = ++uses;
  return &known->second;
}

void MadeKernels::keep(const std::string &key, const Record &record) {
  if (!record->isOk() && record->status().code() != StatusCode::unsupported) {
    entries.erase(key);
    return;
  }
  Entry &entry = entries.at(key);
  entry.lastUse = ++uses;
  entry.bytes = bytesOf(*record) + int64_t(key.size());
  held += entry.bytes;
  while (held > mostBytes)
    forgetOldest();
}

void MadeKernels::forgetOldest() {
  auto oldest = entries.end();
  for (auto entry = entries.begin(); entry != entries.end(); ++entry)
    if (entry->second.bytes > 0 && (oldest == entries.end() || entry->second.lastUse < oldest->second.lastUse))
      oldest = entry;
  held -= oldest->second.bytes;
  entries.erase(oldest);
}

} // namespace heddle
