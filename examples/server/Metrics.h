//===- Metrics.h - what the server counts -----------------------------------===//
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace server {

// Written by the engine's thread, and `refused` by those of clients; read by anyone.
struct Metrics {
  using Count = std::atomic<int64_t>;
  Count finished{0}, cancelled{0}, failed{0}, refused{0}; // requests
  Count promptTokens{0}, cachedTokens{0};                 // of admitted requests; those that were in the cache
  Count generatedTokens{0}, draftedTokens{0}, acceptedTokens{0};
  Count steps{0}, rows{0}, preemptions{0}, evictions{0};
  Count firstTokens{0};
  std::atomic<double> firstTokenSeconds{0};                           // sum
  Count waiting{0}, running{0}, pages{0}, usedPages{0}, keptPages{0}; // now

  // In the text format of OpenMetrics, those of heddle's runtime behind them.
  std::string text() const;
};

} // namespace server
