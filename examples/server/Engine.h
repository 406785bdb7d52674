//===- Engine.h - requests of many clients through one model ----------------===//
// Owns the thread that computes. Each step takes rows of all requests under way: one byte each, and its guesses; pieces of
// prompts that are not computed yet. Requests begin and end between steps, whatever the others do, and what a request gets
// depends on none of the others.
//===----------------------------------------------------------------------===//
#pragma once

#include "Generation.h"
#include "Metrics.h"
#include "Model.h"
#include "PageCache.h"

#include <deque>
#include <thread>

namespace server {

struct EngineOptions {
  int64_t pages = 1024, pageSize = 16;
  int64_t sequences = 16; // that are under way together
  int64_t chunk = 64;     // rows of prompts in a step
  int64_t drafts = 8;     // guesses of a request in a step; 0: none
  bool shares = true;     // pages of texts that begin alike
  int64_t queue = 256;    // requests that may wait
  int64_t gather = 0;     // requests that the first step waits for: a load that does not depend on how fast clients are
};

class Engine {
public:
  Engine(const ByteModel &model, Attention &attention, const EngineOptions &options);
  ~Engine(); // cancels what is under way

  using Pointer = std::shared_ptr<Generation>;
  // INVALID_ARGUMENT names the field. UNAVAILABLE: too many wait.
  api::Result<Pointer> submit(Request request);
  Metrics &metrics() { return counts; }

private:
  // A request, as the engine's thread knows it.
  struct Sequence {
    explicit Sequence(Pointer generation)
        : generation(std::move(generation)), tokens(this->generation->request.prompt) {}
    Pointer generation;
    std::string tokens;              // the prompt, and what came behind it
    int64_t computed = 0;            // tokens whose keys and values lie in pages
    std::vector<int32_t> pages;      // -1: behind the window
    int64_t known = 0;               // pages that others may find
    PageCache::PrefixPointer prefix; // the text of these
    int64_t draftLimit = 1;
    std::string fresh; // bytes that the client has not
    int64_t pending() const { return int64_t(tokens.size()) - computed; }
  };
  using SequencePointer = std::unique_ptr<Sequence>;
  // What a sequence has of a step.
  struct Share {
    int64_t rows = 0;
    std::string drafts;
  };

  void loop();
  bool waitForWork();
  void step();
  void dropCancelled();
  void admit();
  bool begin(Sequence &sequence);
  std::vector<Share> plan() const;
  void planDrafts(std::vector<Share> &shares, int64_t rowsLeft) const;
  void givePages(std::vector<Share> &shares);
  bool growTo(Sequence &sequence, int64_t tokens);
  void preemptNewest();
  api::Status compute(const std::vector<Share> &shares);
  void appendRows(const Sequence &sequence, const Share &share, Tokens &tokens, Batch &batch) const;
  void takeResults(const std::vector<Share> &shares);
  int64_t chooseBytes(Sequence &sequence, const Share &share, const float *rows);
  Finish finishOf(const Sequence &sequence) const;
  void settlePages(Sequence &sequence);
  void release(Sequence &sequence);
  void end(Sequence &sequence, Finish finish, const api::Status &failure = {});
  void removeEnded();
  void count();
  int64_t mostRows() const { return std::max(options.chunk, options.drafts + 1); } // of a sequence in a step

  const ByteModel &model;
  Attention &attention;
  const EngineOptions options;
  const PageReach reach;
  PageCache cache;
  Metrics counts;

  std::mutex mutex; // of the two behind it
  std::deque<SequencePointer> arrived;
  bool isClosing = false;
  std::condition_variable changed;

  std::deque<SequencePointer> waiting;  // the thread's own, as all below
  int64_t awaited;                      // before the first step
  std::vector<SequencePointer> running; // oldest first; null: ended in this step
  std::vector<float> logits;
  std::thread thread; // last: it uses all above
};

} // namespace server
