//===- Completions.h - requests and results as JSON -------------------------===//
// The part of the completions interface that engines share: a prompt in, bytes out, at once or as they come. What is not
// served is refused by name, never ignored.
//===----------------------------------------------------------------------===//
#pragma once

#include "Generation.h"

namespace server {

constexpr char kModelName[] = "byte-model";

// INVALID_ARGUMENT names the field.
api::Result<Request> parseCompletion(const std::string &body);

// Bytes that came, as text to send: whole characters, and nothing that may turn out to be the beginning of a stop text.
class TextStream {
public:
  explicit TextStream(std::vector<std::string> stop) : stop(std::move(stop)) {}
  // finish: how it ended, or none.
  std::string add(const std::string &bytes, Finish finish);

private:
  size_t heldBack() const;
  std::vector<std::string> stop;
  std::string held;
};

struct Completion {
  int64_t id = 0;
  std::string bytes; // all of it, or of an event
  std::string text;
  Finish finish = Finish::none;
  int64_t promptTokens = 0, completionTokens = 0, cachedTokens = 0;
};

// One JSON object; bytes that are no UTF-8 stand as U+FFFD in the text, "tokens" has them as numbers.
std::string textOf(const Completion &completion);
// {"error": {"code": ..., "message": ...}}
std::string textOfError(const std::string &code, const std::string &message);

} // namespace server
