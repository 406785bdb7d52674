//===- PageCache.cpp - who has which page, and what lies in it --------------===//
#include "PageCache.h"

#include <algorithm>
#include <utility>

namespace server {

PageCache::PageCache(int32_t pages, const PageReach &reach, int64_t pageSize, bool shares)
    : reach(reach), pageSize(pageSize), shares(shares), references(size_t(pages), 0), known(size_t(pages)),
      lastUse(size_t(pages), 0), root(std::make_shared<Prefix>()) {
  for (int32_t page = pages; page-- > 0;)
    free.push_back(page);
}

// A long chain ends page by page, not one inside the other.
PageCache::Prefix::~Prefix() {
  PrefixPointer up = std::move(before);
  if (up)
    up->next.erase(tokens);
  while (up && up.use_count() == 1) {
    PrefixPointer further = std::move(up->before);
    if (further)
      further->next.erase(up->tokens);
    up = std::move(further);
  }
}

void PageCache::reference(int32_t page) {
  if (references[size_t(page)]++ == 0) {
    ++usedCount;
    keptCount -= known[size_t(page)] != nullptr;
  }
}

PageCache::Match PageCache::match(std::string_view text) {
  std::vector<PrefixPointer> path{root};
  for (size_t page = 0; shares && (page + 1) * size_t(pageSize) < text.size(); ++page) { // one token is left to compute
    const auto next = path.back()->next.find(text.substr(page * size_t(pageSize), size_t(pageSize)));
    if (next == path.back()->next.end())
      break;
    // whoever keeps it alive: its page, or one behind it
    path.push_back(next->second->shared_from_this());
  }
  const auto isThere = [&](int64_t pages) {
    for (int64_t page = 0; page < pages; ++page)
      if (reach.reads(page, pages * pageSize) && path[size_t(page + 1)]->page < 0)
        return false;
    return true;
  };
  int64_t pages = int64_t(path.size()) - 1;
  while (!isThere(pages))
    --pages;
  Match match{{}, path[size_t(pages)]};
  for (int64_t page = 0; page < pages; ++page) {
    match.pages.push_back(reach.reads(page, pages * pageSize) ? path[size_t(page + 1)]->page : -1);
    if (match.pages.back() >= 0)
      reference(match.pages.back());
  }
  return match;
}

int32_t PageCache::take() {
  int32_t page = -1;
  if (!free.empty()) {
    page = free.back();
    free.pop_back();
  } else {
    page = evict();
  }
  if (page >= 0)
    reference(page);
  return page;
}

int32_t PageCache::evict() {
  int32_t oldest = -1;
  for (int32_t page = 0; page < int32_t(references.size()); ++page)
    if (references[size_t(page)] == 0 && (oldest < 0 || lastUse[size_t(page)] < lastUse[size_t(oldest)]))
      oldest = page;
  if (oldest < 0)
    return -1;
  ++evicted, --keptCount;
  known[size_t(oldest)]->page = -1;
  known[size_t(oldest)] = nullptr;
  return oldest;
}

void PageCache::drop(int32_t page) {
  if (--references[size_t(page)] > 0)
    return;
  --usedCount;
  lastUse[size_t(page)] = ++uses;
  if (known[size_t(page)])
    ++keptCount;
  else
    free.push_back(page);
}

PageCache::PrefixPointer PageCache::keep(const PrefixPointer &prefix, std::string_view tokens, int32_t page) {
  if (!shares)
    return prefix;
  PrefixPointer own;
  if (const auto next = prefix->next.find(tokens); next != prefix->next.end()) {
    own = next->second->shared_from_this();
  } else {
    own = std::make_shared<Prefix>();
    own->before = prefix, own->tokens = tokens;
    prefix->next.emplace(tokens, own.get());
  }
  if (own->page < 0) {
    own->page = page;
    known[size_t(page)] = own;
  }
  return own;
}

} // namespace server
