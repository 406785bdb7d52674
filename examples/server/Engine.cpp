//===- Engine.cpp - requests of many clients through one model --------------===//
#include "Engine.h"

#include "Drafts.h"

#include <utility>

namespace server {
namespace {

api::Status refused(const std::string &what) { return {HEDDLE_INVALID_ARGUMENT, what}; }

constexpr int64_t kMostTokens = int64_t(1) << 24; // of a request: positions and lengths fit everywhere

} // namespace

Engine::Engine(const ByteModel &model, Attention &attention, const EngineOptions &options)
    : model(model), attention(attention), options(options), reach(model.reach(), options.pageSize),
      cache(int32_t(options.pages), reach, options.pageSize, options.shares),
      awaited(std::min(options.gather, options.queue)) {
  counts.pages = options.pages;
  thread = std::thread([this] { loop(); });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex);
    isClosing = true;
    changed.notify_all();
  }
  thread.join();
}

api::Result<Engine::Pointer> Engine::submit(Request request) {
  const int64_t tokens = int64_t(request.prompt.size()) + request.maxTokens;
  if (request.prompt.empty())
    return refused("prompt: expected at least one byte");
  if (request.maxTokens < 1 || tokens > kMostTokens)
    return refused("max_tokens: expected 1 to " + std::to_string(kMostTokens) + " with the prompt's " +
                   std::to_string(request.prompt.size()) + " bytes, got " + std::to_string(request.maxTokens));
  if (const int64_t needed = reach.mostPages(tokens, mostRows()); needed > options.pages)
    return refused("max_tokens: " + std::to_string(tokens) + " bytes with the prompt need " + std::to_string(needed) +
                   " pages, the cache has " + std::to_string(options.pages));
  Pointer generation = std::make_shared<Generation>(std::move(request));
  const std::lock_guard lock(mutex);
  if (int64_t(arrived.size()) + counts.waiting >= options.queue)
    return api::Status(HEDDLE_UNAVAILABLE, std::to_string(options.queue) + " requests wait already");
  arrived.push_back(std::make_unique<Sequence>(generation));
  changed.notify_all();
  return generation;
}

void Engine::loop() {
  while (waitForWork())
    step();
  for (SequencePointer &sequence : running)
    end(*sequence, Finish::cancelled);
  for (SequencePointer &sequence : waiting)
    end(*sequence, Finish::cancelled);
}

// Takes what arrived. False: the engine closes.
bool Engine::waitForWork() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] {
    const bool isThere = int64_t(arrived.size()) >= awaited;
    return isClosing || (isThere && (!arrived.empty() || !waiting.empty() || !running.empty()));
  });
  awaited = 0;
  for (; !arrived.empty(); arrived.pop_front())
    waiting.push_back(std::move(arrived.front()));
  counts.waiting = int64_t(waiting.size());
  return !isClosing;
}

void Engine::step() {
  dropCancelled();
  admit();
  std::vector<Share> shares = plan();
  givePages(shares);
  if (const api::Status status = running.empty() ? api::Status() : compute(shares); !status) {
    for (SequencePointer &sequence : running)
      end(*sequence, Finish::failed, status);
  } else {
    takeResults(shares);
  }
  removeEnded();
  count();
}

void Engine::dropCancelled() {
  for (SequencePointer &sequence : running)
    if (sequence->generation->isCancelled())
      end(*sequence, Finish::cancelled);
  for (SequencePointer &sequence : waiting)
    if (sequence->generation->isCancelled())
      end(*sequence, Finish::cancelled);
  removeEnded();
}

// In the order of arrival.
void Engine::admit() {
  while (!waiting.empty() && int64_t(running.size()) < options.sequences && begin(*waiting.front())) {
    running.push_back(std::move(waiting.front()));
    waiting.pop_front();
  }
}

// Finds what is there of the text. False: there are too few pages for the rest now.
bool Engine::begin(Sequence &sequence) {
  PageCache::Match match = cache.match(sequence.tokens);
  sequence.pages = std::move(match.pages), sequence.prefix = std::move(match.prefix);
  sequence.known = int64_t(sequence.pages.size());
  sequence.computed = sequence.known * options.pageSize;
  const int64_t found = int64_t(sequence.pages.size()) - std::count(sequence.pages.begin(), sequence.pages.end(), -1);
  const int64_t needed = reach.mostPages(int64_t(sequence.tokens.size()) + 1, mostRows()) - found;
  if (!running.empty() && needed > cache.pages() - cache.used()) {
    release(sequence);
    return false;
  }
  if (sequence.tokens.size() == sequence.generation->request.prompt.size()) { // else it was preempted
    sequence.generation->cachedTokens = sequence.computed;
    counts.promptTokens += int64_t(sequence.tokens.size()), counts.cachedTokens += sequence.computed;
  }
  return true;
}

// A row for everyone who has computed all but its last byte; pieces of prompts, oldest first; guesses.
std::vector<Engine::Share> Engine::plan() const {
  std::vector<Share> shares(running.size());
  int64_t chunk = options.chunk;
  for (size_t i = 0; i < running.size(); ++i) {
    const int64_t pending = running[i]->pending();
    shares[i].rows = pending == 1 ? 1 : std::min(pending, chunk);
    chunk -= pending == 1 ? 0 : shares[i].rows;
  }
  planDrafts(shares, chunk);
  return shares;
}

// With what is left of the rows: where prompts are computed, guesses wait.
void Engine::planDrafts(std::vector<Share> &shares, int64_t rowsLeft) const {
  for (size_t i = 0; i < running.size(); ++i) {
    const Sequence &sequence = *running[i];
    if (sequence.pending() != 1)
      continue;
    const Request &request = sequence.generation->request;
    const int64_t made = int64_t(sequence.tokens.size() - request.prompt.size());
    const int64_t most = std::min({options.drafts, sequence.draftLimit, rowsLeft, request.maxTokens - made - 1});
    shares[i].drafts = draftOf(sequence.tokens, most);
    shares[i].rows += int64_t(shares[i].drafts.size());
    rowsLeft -= int64_t(shares[i].drafts.size());
  }
}

// Oldest first; where pages run out, the newest gives its own and waits.
void Engine::givePages(std::vector<Share> &shares) {
  for (size_t i = 0; i < running.size(); ++i)
    while (i < running.size() && !growTo(*running[i], running[i]->computed + shares[i].rows))
      preemptNewest();
  shares.resize(running.size());
}

bool Engine::growTo(Sequence &sequence, int64_t tokens) {
  while (int64_t(sequence.pages.size()) * options.pageSize < tokens) {
    const int32_t page = cache.take();
    if (page < 0)
      return false;
    sequence.pages.push_back(page);
  }
  return true;
}

// Its bytes stay; what was computed of them may still be known when it begins again.
void Engine::preemptNewest() {
  release(*running.back());
  waiting.push_front(std::move(running.back()));
  running.pop_back();
  ++counts.preemptions;
}

api::Status Engine::compute(const std::vector<Share> &shares) {
  Tokens tokens;
  Batch batch;
  batch.offsets = {0};
  for (const SequencePointer &sequence : running)
    batch.maxPages = std::max(batch.maxPages, int32_t(sequence->pages.size()));
  for (size_t i = 0; i < running.size(); ++i)
    appendRows(*running[i], shares[i], tokens, batch);
  ++counts.steps, counts.rows += batch.rows();
  return model.run(tokens, batch, attention, logits);
}

void Engine::appendRows(const Sequence &sequence, const Share &share, Tokens &tokens, Batch &batch) const {
  const std::string rows =
      sequence.tokens.substr(size_t(sequence.computed), size_t(share.rows) - share.drafts.size()) + share.drafts;
  for (int64_t row = 0; row < share.rows; ++row) {
    const int64_t position = sequence.computed + row, place = position % options.pageSize;
    if (position + 1 >= int64_t(sequence.tokens.size()))
      tokens.asked.push_back(int32_t(batch.rows()));
    tokens.bytes.push_back(uint8_t(rows[size_t(row)]));
    tokens.positions.push_back(int32_t(position));
    batch.places.push_back(int32_t(sequence.pages[size_t(position / options.pageSize)] * options.pageSize + place));
  }
  batch.offsets.push_back(int32_t(batch.rows()));
  batch.lengths.push_back(int32_t(sequence.computed + share.rows));
  batch.table.insert(batch.table.end(), sequence.pages.begin(), sequence.pages.end());
  batch.table.resize(size_t(batch.maxPages) * batch.lengths.size(), -1);
}

void Engine::takeResults(const std::vector<Share> &shares) {
  const float *rows = logits.data();
  for (size_t i = 0; i < running.size(); ++i) {
    Sequence &sequence = *running[i];
    const int64_t asked =
        std::max<int64_t>(0, sequence.computed + shares[i].rows + 1 - int64_t(sequence.tokens.size()));
    sequence.computed += asked > 0 ? chooseBytes(sequence, shares[i], rows) : shares[i].rows;
    rows += asked * kVocabulary;
    settlePages(sequence);
    if (const Finish finish = finishOf(sequence); finish != Finish::none)
      end(sequence, finish);
    else if (asked > 0)
      sequence.generation->give(std::exchange(sequence.fresh, {}));
  }
}

// One byte behind the text, and one more behind each guess that is it. Returns how many rows are of the text.
int64_t Engine::chooseBytes(Sequence &sequence, const Share &share, const float *rows) {
  const Request &request = sequence.generation->request;
  const bool isFirst = sequence.tokens.size() == request.prompt.size();
  size_t right = 0;
  std::string bytes;
  for (bool goesOn = true; goesOn; rows += kVocabulary) {
    bytes += char(choose(rows, request.temperature, request.seed, int64_t(sequence.tokens.size())));
    sequence.tokens += bytes.back();
    goesOn = right < share.drafts.size() && share.drafts[right] == bytes.back() && finishOf(sequence) == Finish::none;
    right += goesOn;
  }
  counts.generatedTokens += int64_t(bytes.size());
  counts.draftedTokens += int64_t(share.drafts.size()), counts.acceptedTokens += int64_t(right);
  if (!share.drafts.empty()) // twice as many where all were right
    sequence.draftLimit =
        right == share.drafts.size() ? std::max(sequence.draftLimit, 2 * int64_t(right)) : int64_t(right) + 1;
  if (isFirst) {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - sequence.generation->begin;
    ++counts.firstTokens;
    counts.firstTokenSeconds = counts.firstTokenSeconds + taken.count(); // this thread alone writes it
  }
  sequence.fresh = std::move(bytes);
  return int64_t(sequence.tokens.size()) - 1 - sequence.computed;
}

Finish Engine::finishOf(const Sequence &sequence) const {
  const Request &request = sequence.generation->request;
  const size_t made = sequence.tokens.size() - request.prompt.size();
  for (const std::string &stop : request.stop)
    if (made >= stop.size() && sequence.tokens.compare(sequence.tokens.size() - stop.size(), stop.size(), stop) == 0)
      return Finish::stop;
  return int64_t(made) >= request.maxTokens ? Finish::length : Finish::none;
}

// Full pages become known, those behind the window go.
void Engine::settlePages(Sequence &sequence) {
  for (; (sequence.known + 1) * options.pageSize <= sequence.computed; ++sequence.known)
    sequence.prefix = cache.keep(
        sequence.prefix,
        std::string_view(sequence.tokens).substr(size_t(sequence.known * options.pageSize), size_t(options.pageSize)),
        sequence.pages[size_t(sequence.known)]);
  for (int64_t page = reach.windowPage(sequence.computed) - 1; page >= reach.firstPages(); --page) {
    if (sequence.pages[size_t(page)] < 0)
      break; // and all before it
    cache.drop(std::exchange(sequence.pages[size_t(page)], -1));
  }
}

void Engine::release(Sequence &sequence) {
  for (; !sequence.pages.empty(); sequence.pages.pop_back()) // the last ones are forgotten first
    if (sequence.pages.back() >= 0)
      cache.drop(sequence.pages.back());
  sequence.computed = sequence.known = 0;
  sequence.prefix = nullptr;
}

void Engine::end(Sequence &sequence, Finish finish, const api::Status &failure) {
  release(sequence);
  ++(finish == Finish::failed ? counts.failed : finish == Finish::cancelled ? counts.cancelled : counts.finished);
  count();
  sequence.generation->end(finish, sequence.fresh, failure);
  sequence.generation = nullptr;
}

void Engine::removeEnded() {
  const auto isEnded = [](const SequencePointer &sequence) { return sequence->generation == nullptr; };
  running.erase(std::remove_if(running.begin(), running.end(), isEnded), running.end());
  waiting.erase(std::remove_if(waiting.begin(), waiting.end(), isEnded), waiting.end());
}

void Engine::count() {
  counts.waiting = int64_t(waiting.size()), counts.running = int64_t(running.size());
  counts.usedPages = cache.used(), counts.keptPages = cache.kept(), counts.evictions = cache.evictions();
}

} // namespace server
