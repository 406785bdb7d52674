//===- Metrics.cpp - what the server counts ---------------------------------===//
#include "Metrics.h"

#include <heddle/heddle_stats.h>

namespace server {
namespace {

// Counters go up only, gauges say what is now.
std::string counter(const std::string &name, const std::string &help, int64_t value) {
  return "# TYPE " + name + " counter\n# HELP " + name + " " + help + "\n" + name + "_total " + std::to_string(value) +
         "\n";
}

std::string gauge(const std::string &name, const std::string &help, int64_t value) {
  return "# TYPE " + name + " gauge\n# HELP " + name + " " + help + "\n" + name + " " + std::to_string(value) + "\n";
}

std::string requestsText(const Metrics &metrics) {
  const std::string name = "heddle_server_requests";
  std::string text = "# TYPE " + name + " counter\n# HELP " + name + " Requests that are over, by how they ended.\n";
  const auto add = [&](const char *outcome, int64_t value) {
    text += name + "_total{outcome=\"" + outcome + "\"} " + std::to_string(value) + "\n";
  };
  add("finished", metrics.finished);
  add("cancelled", metrics.cancelled);
  add("failed", metrics.failed);
  add("refused", metrics.refused);
  return text;
}

std::string firstTokensText(const Metrics &metrics) {
  const std::string name = "heddle_server_first_token_seconds";
  return "# TYPE " + name + " summary\n# UNIT " + name + " seconds\n# HELP " + name +
         " From a request's arrival to its first byte.\n" + name + "_sum " +
         std::to_string(metrics.firstTokenSeconds.load()) + "\n" + name + "_count " +
         std::to_string(metrics.firstTokens.load()) + "\n";
}

// Ends with the line that ends all metrics. Others may count while it is asked for.
std::string runtimeText() {
  uint64_t bytes = 0;
  std::string text;
  while (heddle_stats_text(text.data(), text.size(), &bytes) == HEDDLE_OK && bytes > text.size())
    text.resize(bytes + 1024);
  text.resize(bytes > 0 ? bytes - 1 : 0); // without its zero
  return text;
}

} // namespace

std::string Metrics::text() const {
  return requestsText(*this) + firstTokensText(*this) +
         counter("heddle_server_prompt_tokens", "Bytes of prompts of requests that were begun.", promptTokens) +
         counter("heddle_server_cached_tokens", "Of these, bytes whose keys and values were in the cache.",
                 cachedTokens) +
         counter("heddle_server_generated_tokens", "Bytes of results.", generatedTokens) +
         counter("heddle_server_drafted_tokens", "Bytes that were guessed.", draftedTokens) +
         counter("heddle_server_accepted_tokens", "Guesses that were right.", acceptedTokens) +
         counter("heddle_server_steps", "Passes through the model.", steps) +
         counter("heddle_server_rows", "Bytes that went through the model.", rows) +
         counter("heddle_server_preemptions", "Requests that had to give their pages to older ones.", preemptions) +
         counter("heddle_server_evictions", "Pages of known texts that were taken for others.", evictions) +
         gauge("heddle_server_waiting_requests", "Requests that were not begun.", waiting) +
         gauge("heddle_server_running_requests", "Requests under way.", running) +
         gauge("heddle_server_pages", "Pages of the cache.", pages) +
         gauge("heddle_server_used_pages", "Pages that requests under way read.", usedPages) +
         gauge("heddle_server_kept_pages", "Pages that are kept for requests to come.", keptPages) + runtimeText();
}

} // namespace server
