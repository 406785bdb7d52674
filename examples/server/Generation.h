//===- Generation.h - one request, between its client and the engine --------===//
// The client's thread waits for bytes and may cancel; the engine's thread gives bytes and says how it ended.
//===----------------------------------------------------------------------===//
#pragma once

#include <heddle/heddle.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

namespace server {

namespace api = heddle::api;

struct Request {
  std::string prompt; // bytes, at least one
  int64_t maxTokens = 16;
  double temperature = 0; // 0: the most likely byte
  uint64_t seed = 0;      // of chance, where there is some: the same request gives the same bytes
  std::vector<std::string> stop;
  bool isStreamed = false; // events as bytes come, or one answer
};

enum class Finish { none, length, stop, cancelled, failed };

class Generation {
public:
  explicit Generation(Request request) : request(std::move(request)) {}

  struct News {
    std::string bytes; // since the last call
    Finish finish = Finish::none;
    api::Status failure; // where it failed
  };
  // Returns when there are some, or after so long without.
  News wait(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, patience, [&] { return !news.bytes.empty() || news.finish != Finish::none; });
    News told = news;
    news.bytes.clear();
    return told;
  }
  void cancel() { wantsEnd = true; }
  bool isCancelled() const { return wantsEnd; }

  void give(const std::string &bytes) {
    const std::lock_guard lock(mutex);
    news.bytes += bytes;
    changed.notify_all();
  }
  void end(Finish finish, const std::string &bytes, api::Status failure) {
    const std::lock_guard lock(mutex);
    news.bytes += bytes;
    news.finish = finish, news.failure = std::move(failure);
    changed.notify_all();
  }

  const Request request;
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  std::atomic<int64_t> cachedTokens{0}; // of the prompt, that were in the cache

private:
  std::mutex mutex;
  std::condition_variable changed;
  News news;
  std::atomic<bool> wantsEnd{false};
};

} // namespace server
