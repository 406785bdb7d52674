// Owns lookups in several stores at once. Writing happens through the Store of the user's own file alone: what is
// added here is only ever read.
#pragma once

#include "runtime/Store/Store.h"

namespace heddle {

// What a lookup found, and the path of the store that had it (empty: none).
struct StackLookup : StoreLookup {
  std::string path;
};

// Stores in the order in which they are asked: the user's own first. Members are thread safe, but for add.
class StoreStack {
public:
  void add(Store store) { stores.push_back(std::move(store)); }
  bool isEmpty() const { return stores.empty(); }

  // The best match of all stores, as Store::lookup ranks them; of equally good ones the earlier store's. A store
  // that cannot be read fails the lookup: it is never passed over in silence.
  Result<StackLookup> lookup(const LookupQuery &query) const;
  // From the first store that has the kernel; notFound if none has. A store that cannot be read fails it.
  Result<KernelRecord> kernel(const std::string &contentKey) const;
  // From the first store that knows the name: a name of the user's own hides a shipped one. notFound lists all.
  Result<NameRecord> findName(const std::string &name) const;
  // Store::version of each.
  Result<std::vector<int64_t>> versions() const;
  // "'a.db'" or "'a.db' and 'b.db'"; for messages.
  std::string paths() const;

private:
  std::vector<Store> stores;
};

// "a.db:b.db" apart; empty parts are none.
std::vector<std::string> splitPaths(const std::string &list);

// Opens a file that ships: immutable, on any file system. invalidArgument if rows lie in a side file and not yet in
// this one (heddle cache export makes files fit to ship).
Result<Store> openShipped(const std::string &path, bool allowForeignWriters = false);

} // namespace heddle
