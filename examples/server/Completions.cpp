//===- Completions.cpp - requests and results as JSON -----------------------===//
#include "Completions.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace server {
namespace {

using Json = nlohmann::json;

constexpr char kFields[] = "model, prompt, max_tokens, temperature, seed, stop, stream";
constexpr size_t kMostStops = 8;

api::Status refused(const std::string &what) { return {HEDDLE_INVALID_ARGUMENT, what}; }

std::string shown(const Json &value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 60) + "...";
}

api::Status readPrompt(const Json &value, std::string &prompt) {
  if (value.is_string()) {
    prompt = value.get<std::string>();
    return {};
  }
  if (!value.is_array())
    return refused("prompt: expected a text, or an array of bytes, got " + shown(value));
  for (const Json &byte : value) {
    if (!byte.is_number_integer() || byte < 0 || byte > 255)
      return refused("prompt: expected bytes, 0 to 255, got " + shown(byte));
    prompt += char(byte.get<int>());
  }
  return {};
}

api::Status readStop(const Json &value, std::vector<std::string> &stop) {
  for (const Json &text : value.is_array() ? value : Json::array({value})) {
    if (!text.is_string() || text.get_ref<const std::string &>().empty())
      return refused("stop: expected a text that is not empty, or an array of them, got " + shown(text));
    stop.push_back(text.get<std::string>());
  }
  if (stop.size() > kMostStops)
    return refused("stop: expected at most " + std::to_string(kMostStops) + " texts, got " +
                   std::to_string(stop.size()));
  return {};
}

api::Status readNumber(const std::string &name, const Json &value, Request &request) {
  if (name == "temperature") {
    if (!value.is_number() || value < 0 || value > 100)
      return refused("temperature: expected 0 to 100, got " + shown(value));
    request.temperature = value.get<double>();
    return {};
  }
  const bool isSeed = name == "seed";
  if (!value.is_number_integer() || value < (isSeed ? 0 : 1))
    return refused(name + ": expected a whole number of " + (isSeed ? "0" : "1") + " or more, got " + shown(value));
  if (isSeed)
    request.seed = value.get<uint64_t>();
  else if (value > (int64_t(1) << 40))
    return refused("max_tokens: " + shown(value) + " are too many");
  else
    request.maxTokens = value.get<int64_t>();
  return {};
}

api::Status readField(const std::string &name, const Json &value, Request &request) {
  if (name == "prompt")
    return readPrompt(value, request.prompt);
  if (name == "stop")
    return readStop(value, request.stop);
  if (name == "max_tokens" || name == "temperature" || name == "seed")
    return readNumber(name, value, request);
  if (name == "stream") {
    if (!value.is_boolean())
      return refused("stream: expected true or false, got " + shown(value));
    request.isStreamed = value.get<bool>();
    return {};
  }
  if (name == "model")
    return value == kModelName ? api::Status()
                               : refused("model: expected " + std::string(kModelName) + ", got " + shown(value));
  return refused("there is no field " + shown(name) + " here; there are " + kFields);
}

const char *nameOf(Finish finish) {
  return finish == Finish::stop ? "stop" : finish == Finish::length ? "length" : "cancelled";
}

// Bytes of the last character that is not whole yet.
size_t incompleteBytes(const std::string &text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const uint8_t byte = uint8_t(text[text.size() - back]);
    if (byte >= 0xc0) {
      const size_t whole = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return whole > back ? back : 0;
    }
    if (byte < 0x80)
      return 0;
  }
  return 0;
}

} // namespace

api::Result<Request> parseCompletion(const std::string &body) {
  Request request;
  try {
    const Json json = Json::parse(body);
    if (!json.is_object())
      return refused("expected a JSON object with " + std::string(kFields) + ", got " + shown(json));
    for (const auto &[name, value] : json.items())
      if (const api::Status status = readField(name, value, request); !status)
        return status;
    if (!json.contains("prompt"))
      return refused("prompt: is missing");
  } catch (const Json::exception &error) {
    return refused(std::string("the body is no JSON: ") + error.what());
  }
  return request;
}

size_t TextStream::heldBack() const {
  size_t most = incompleteBytes(held);
  for (const std::string &text : stop)
    for (size_t count = std::min(text.size() - 1, held.size()); count > most; --count)
      if (held.compare(held.size() - count, count, text, 0, count) == 0)
        most = count;
  return most;
}

std::string TextStream::add(const std::string &bytes, Finish finish) {
  held += bytes;
  if (finish == Finish::stop)
    for (const std::string &text : stop)
      if (held.size() >= text.size() && held.compare(held.size() - text.size(), text.size(), text) == 0) {
        held.resize(held.size() - text.size());
        break;
      }
  const size_t count = finish == Finish::none ? held.size() - heldBack() : held.size();
  std::string whole = held.substr(0, count);
  held.erase(0, count);
  return whole;
}

std::string textOf(const Completion &completion) {
  Json tokens = Json::array();
  for (char byte : completion.bytes)
    tokens.push_back(uint8_t(byte));
  Json choice = {{"index", 0}, {"text", completion.text}, {"tokens", std::move(tokens)}, {"finish_reason", nullptr}};
  if (completion.finish != Finish::none)
    choice["finish_reason"] = nameOf(completion.finish);
  const Json json = {{"id", "cmpl-" + std::to_string(completion.id)},
                     {"object", "text_completion"},
                     {"model", kModelName},
                     {"choices", Json::array({std::move(choice)})},
                     {"usage",
                      {{"prompt_tokens", completion.promptTokens},
                       {"completion_tokens", completion.completionTokens},
                       {"cached_tokens", completion.cachedTokens}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string textOfError(const std::string &code, const std::string &message) {
  const Json json = {{"error", {{"code", code}, {"message", message}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace server
