//===- PageCache.h - who has which page, and what lies in it ----------------===//
// Owns the numbers of the cache's pages, not their memory. A page has as many references as sequences that read it, and one
// more while it is known by what lies in it: full pages are kept behind the texts that lead to them, for sequences that
// begin with the same text, until their memory is wanted; those that were not used for longest go first.
// For one thread at a time.
//===----------------------------------------------------------------------===//
#pragma once

#include "Attention.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace server {

// Which pages a query at a position reads. The call looks at keys in tiles of 64 (docs/serving.md), so pages of a tile
// stay together.
class PageReach {
public:
  PageReach(const Reach &reach, int64_t pageSize) : reach(reach), pageSize(pageSize) {}
  bool reads(int64_t page, int64_t position) const { return page < firstPages() || page >= windowPage(position); }
  int64_t windowPage(int64_t position) const {
    return roundDown(std::max<int64_t>(0, position - reach.left)) / pageSize;
  }
  int64_t firstPages() const { return pagesOf(roundDown(reach.first + kTile - 1), pageSize); }
  // A sequence of so many tokens never has more, where it computes at most `rows` at a time.
  int64_t mostPages(int64_t tokens, int64_t rows) const {
    return std::min(pagesOf(tokens, pageSize), firstPages() + pagesOf(reach.left + kTile + rows, pageSize) + 1);
  }
  static int64_t pagesOf(int64_t tokens, int64_t pageSize) { return (tokens + pageSize - 1) / pageSize; }

private:
  static constexpr int64_t kTile = 64;
  static int64_t roundDown(int64_t position) { return position / kTile * kTile; }
  Reach reach;
  int64_t pageSize;
};

class PageCache {
public:
  // What a text up to the end of a page leads to. Lives as long as a page behind it, or whoever holds it.
  struct Prefix;
  using PrefixPointer = std::shared_ptr<Prefix>;
  // The longest beginning of a text whose pages are there, as far as later queries read them: -1 stands for the others.
  struct Match {
    std::vector<int32_t> pages; // each with a reference for the caller
    PrefixPointer prefix;
  };

  PageCache(int32_t pages, const PageReach &reach, int64_t pageSize, bool shares);

  Match match(std::string_view text);
  // A page for new tokens, with one reference; -1: all are in use.
  int32_t take();
  void drop(int32_t page);
  // The page behind `prefix` is full of `tokens`: it is known from now on, unless another one with the same text is.
  PrefixPointer keep(const PrefixPointer &prefix, std::string_view tokens, int32_t page);
  PrefixPointer beginning() const { return root; }

  int64_t pages() const { return int64_t(references.size()); }
  int64_t used() const { return usedCount; }    // that sequences read
  int64_t kept() const { return keptCount; }    // that are only known
  int64_t evictions() const { return evicted; } // pages that were known and taken

private:
  void reference(int32_t page);
  int32_t evict();

  const PageReach reach;
  const int64_t pageSize;
  const bool shares;
  std::vector<int32_t> references;  // of sequences
  std::vector<PrefixPointer> known; // by page
  std::vector<uint64_t> lastUse;
  std::vector<int32_t> free;
  uint64_t uses = 0;
  int64_t usedCount = 0, keptCount = 0, evicted = 0;
  PrefixPointer root;
};

struct PageCache::Prefix : std::enable_shared_from_this<PageCache::Prefix> {
  PrefixPointer before; // null at the beginning
  std::string tokens;   // of its page
  int32_t page = -1;    // -1: it was taken for others
  std::map<std::string, Prefix *, std::less<>> next;
  ~Prefix();
};

} // namespace server
