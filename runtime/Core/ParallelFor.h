// Items are taken from a counter, so that uneven items spread by themselves.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace heddle {

// `requested`, or the number of processors if it is 0; never more than there are items, at least 1.
inline int threadCountFor(int64_t items, int requested) {
  int64_t threads = requested > 0 ? requested : int(std::thread::hardware_concurrency());
  return int(std::max<int64_t>(1, std::min(threads, items)));
}

// Calls work(worker, item) for every item in [0, items), worker < workers. The caller's thread is
// worker 0, and does the work of those that the system has no threads for. Returns when all are done. What `work`
// throws ends the work, and the first such exception is thrown here.
template <class Work> void parallelFor(int64_t items, int workers, const Work &work) {
  std::atomic<int64_t> next{0};
  std::exception_ptr thrown;
  std::once_flag isFirst;
  auto loop = [&](int worker) noexcept {
    try {
      for (int64_t item = next++; item < items; item = next++)
        work(worker, item);
    } catch (...) {
      next = items;
      std::call_once(isFirst, [&] { thrown = std::current_exception(); });
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(size_t(std::max(workers, 1)));
  try {
    for (int worker = 1; worker < workers; ++worker)
      threads.emplace_back(loop, worker);
  } catch (const std::exception &) {
  }
  loop(0);
  for (std::thread &thread : threads)
    thread.join();
  if (thrown)
    std::rethrow_exception(thrown);
}

} // namespace heddle
