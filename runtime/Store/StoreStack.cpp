#include "runtime/Store/StoreStack.h"

#include "runtime/Store/StoreImpl.h"

#include <algorithm>

namespace heddle {

Result<StackLookup> StoreStack::lookup(const LookupQuery &query) const {
  StackLookup best;
  for (const Store &store : stores) {
    HEDDLE_ASSIGN(StoreLookup found, store.lookup(query));
    if (found.match == MatchKind::none)
      continue;
    const bool isFirst = best.match == MatchKind::none;
    const bool isTie = !isFirst && lookupRank(query, found.winner) == lookupRank(query, best.winner);
    if (isFirst || lookupOrder(query, found.winner) < lookupOrder(query, best.winner))
      best = {std::move(found), store.path()};
    best.isForBucket = best.isForBucket && !isTie;
  }
  return best;
}

Result<KernelRecord> StoreStack::kernel(const std::string &contentKey) const {
  for (const Store &store : stores) {
    Result<KernelRecord> found = store.kernel(contentKey);
    if (found || found.status().code() != StatusCode::notFound)
      return found;
  }
  return Status::notFound("no kernel '" + contentKey + "' in " + paths());
}

Result<NameRecord> StoreStack::findName(const std::string &name) const {
  for (const Store &store : stores) {
    Result<NameRecord> found = store.findName(name);
    if (found || found.status().code() != StatusCode::notFound)
      return found;
  }
  std::string known;
  for (const Store &store : stores) {
    HEDDLE_ASSIGN(std::vector<NameRecord> names, store.names());
    for (const NameRecord &row : names)
      known += (known.empty() ? "" : ", ") + row.name;
  }
  return Status::notFound("store " + paths() + ": no pattern is named '" + name + "'; " +
                          (known.empty() ? "it names none" : "it names " + known));
}

Result<std::vector<int64_t>> StoreStack::versions() const {
  std::vector<int64_t> versions;
  for (const Store &store : stores) {
    HEDDLE_ASSIGN(int64_t version, store.version());
    versions.push_back(version);
  }
  return versions;
}

std::string StoreStack::paths() const {
  std::string text;
  for (const Store &store : stores)
    text += (text.empty() ? "'" : " and '") + store.path() + "'";
  return text;
}

std::vector<std::string> splitPaths(const std::string &list) {
  std::vector<std::string> paths;
  for (size_t begin = 0; begin < list.size();) {
    size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin)
      paths.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return paths;
}

Result<Store> openShipped(const std::string &path, bool allowForeignWriters) {
  StoreOptions options;
  options.mode = StoreMode::immutable;
  options.allowForeignWriters = allowForeignWriters;
  return Store::open(path, options);
}

} // namespace heddle
