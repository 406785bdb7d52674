// Owns the stores of a heddle_store and what they answered. A question that was asked before, and whose kernel is still
// open, is answered from memory in less than a microsecond: programs may ask before every launch. What other processes
// publish is seen within kTrustedFor.
#pragma once

#include "runtime/Device/Kernel.h"
#include "runtime/Store/StoreStack.h"

#include <chrono>
#include <map>
#include <mutex>

namespace heddle {

// What is said of a kernel that was found, and remembered with it.
struct KernelFinding {
  MatchKind match = MatchKind::none;
  double medianUs = 0;   // of the tuning that chose it; 0 if untuned
  int64_t queryRows = 0; // ProblemBucket::queryRows of the calls that it was chosen for
};

struct FoundKernel : KernelFinding {
  Kernel kernel;
};

// Thread safe, but for add.
class KernelFinder {
public:
  // How long answers are given without asking whether a store has changed.
  static constexpr std::chrono::milliseconds kTrustedFor{1000};

  void add(Store store);

  // The best kernel for this device, loaded. Of `query` the pattern is a name or a digest; device and driver are filled
  // in here. notFound if nothing fits.
  Result<FoundKernel> find(const Device &device, LookupQuery query);

  // The next question is put to the stores: this process has published.
  void distrust();

private:
  struct Answer {
    KernelFinding finding;
    WeakKernel kernel;
  };

  // `isForBucket`: as StoreLookup has it.
  Result<FoundKernel> ask(const Device &device, LookupQuery query, bool &isForBucket) const;
  std::optional<FoundKernel> remembered(const Device &device, const std::string &question, uint64_t &times);
  // Unless answers were forgotten since the question was asked, at `times`: this one may be older.
  void remember(const std::string &question, const FoundKernel &found, uint64_t times);
  // Forgets all answers if a store has changed, or cannot be asked.
  void renewTrust(std::chrono::steady_clock::time_point now);

  StoreStack stores;
  std::mutex mutex; // guards what follows; never held while a store is read for an answer or a module loads
  std::map<std::string, Answer> answers;
  uint64_t timesForgotten = 0;
  std::vector<int64_t> versions; // of the stores, when they were last asked
  std::chrono::steady_clock::time_point trustedUntil;
};

} // namespace heddle
