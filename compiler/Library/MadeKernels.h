// Owns the records of kernels that this process compiled, by key: each is made once, by the first who asks, while the
// others wait for it. Where no database has them they are all there is, so they are kept, but within a bound: of more
// bytes than that those go that nobody asked for longest, and are made again if somebody does. A kernel that is open
// needs no record.
#pragma once

#include "runtime/Api/KernelFinder.h"

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace heddle {

/// Thread safe.
class MadeKernels {
public:
  static constexpr int64_t kMostBytes = int64_t(32) << 20; ///< about a hundred kernels

  explicit MadeKernels(int64_t mostBytes = kMostBytes) : mostBytes(mostBytes) {}

  using Make = std::function<Result<KernelRecord>()>;
  /// The kernel of this key, loaded: one that is open there, else of the record, which `make` gives if none is kept. What
  /// it throws is a status. A failure is kept if it is unsupported; others may go better another time.
  Result<FoundKernel> kernel(const Device &device, const std::string &key, const Make &make);
  /// The same if it needs no waiting. `isBegun`: it was made, or somebody makes it.
  std::optional<Result<FoundKernel>> ready(const Device &device, const std::string &key, bool &isBegun);

  /// What the records and messages take that are kept, texts and code.
  int64_t heldBytes() const;

private:
  using Record = std::shared_ptr<const Result<KernelRecord>>;
  struct Entry {
    std::shared_future<Record> record;
    int64_t bytes = 0; ///< 0 while it is made
    uint64_t lastUse = 0;
  };

  Result<FoundKernel> load(const Device &device, const std::string &key, const Result<KernelRecord> &record);
  /// What follows needs the lock.
  std::optional<FoundKernel> open(const Device &device, const std::string &key);
  Entry *find(const std::string &key);
  void keep(const std::string &key, const Record &record);
  void forgetOldest();

  const int64_t mostBytes;
  mutable std::mutex mutex; ///< guards what follows
  std::map<std::string, Entry> entries;
  std::map<std::string, WeakKernel> loaded; ///< by key and device
  int64_t held = 0;
  uint64_t uses = 0;
};

} // namespace heddle
