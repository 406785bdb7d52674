//===- Weights.cpp - tensors of a safetensors file --------------------------===//
// 8 bytes say how long the header is, a JSON object; then come the tensors. Nothing in a file is believed unchecked.
//===----------------------------------------------------------------------===//
#include "Weights.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>

namespace server {
namespace {

using Json = nlohmann::json;

constexpr size_t kLengthBytes = 8;

std::string textOf(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "[" : ", ") + (size == 0 ? std::string("any") : std::to_string(size));
  return text + "]";
}

// Elements of these sizes; -1: more than a file can hold.
int64_t countOf(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0 || (size > 0 && count > (int64_t(1) << 40) / size))
      return -1;
    count *= size;
  }
  return count;
}

class Reader {
public:
  Reader(const std::string &path, std::string bytes) : path(path), bytes(std::move(bytes)) {}

  api::Result<Weights> read() {
    if (bytes.size() < kLengthBytes)
      return bad("expected 8 bytes of the header's length, got " + std::to_string(bytes.size()));
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof(length)); // little endian, as this machine
    if (length > bytes.size() - kLengthBytes)
      return bad("the header has " + std::to_string(length) + " bytes, the file " + std::to_string(bytes.size()));
    data = bytes.data() + kLengthBytes + length;
    const Json header = Json::parse(bytes.data() + kLengthBytes, data, nullptr, /*allow_exceptions=*/false);
    if (!header.is_object())
      return bad("the header is no JSON object");
    Weights weights;
    for (const auto &[name, entry] : header.items()) {
      const api::Status status =
          name == "__metadata__" ? readTexts(entry, weights.metadata) : readTensor(name, entry, weights.tensors[name]);
      if (!status)
        return status;
    }
    return weights;
  }

private:
  api::Status bad(const std::string &what) const { return {HEDDLE_CORRUPT, path + ": " + what}; }

  api::Status readTexts(const Json &table, std::map<std::string, std::string> &texts) const {
    if (!table.is_object())
      return bad("__metadata__ is no object");
    for (const auto &[name, text] : table.items()) {
      if (!text.is_string())
        return bad("__metadata__: " + name + " is no text");
      texts[name] = text.get<std::string>();
    }
    return {};
  }

  api::Status readTensor(const std::string &name, const Json &entry, Weight &weight) const {
    try {
      if (const std::string dtype = entry.at("dtype"); dtype != "F32")
        return bad(name + ": expected F32, got " + dtype);
      weight.shape = entry.at("shape").get<std::vector<int64_t>>();
      const auto offsets = entry.at("data_offsets").get<std::vector<uint64_t>>();
      const uint64_t end = uint64_t(bytes.data() + bytes.size() - data);
      const int64_t count = countOf(weight.shape);
      if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > end || count < 0 ||
          offsets[1] - offsets[0] != uint64_t(count) * sizeof(float))
        return bad(name + ": its offsets are not those of " + textOf(weight.shape) + " in " + std::to_string(end) +
                   " bytes");
      weight.values.resize(size_t(count));
      if (count > 0)
        std::memcpy(weight.values.data(), data + offsets[0], offsets[1] - offsets[0]);
    } catch (const Json::exception &error) {
      return bad(name + ": " + error.what());
    }
    return {};
  }

  const std::string &path;
  const std::string bytes;
  const char *data = nullptr;
};

} // namespace

api::Result<Weights> Weights::read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad())
    return api::Status(HEDDLE_IO, path + ": cannot be read");
  return Reader(path, std::move(bytes)).read();
}

api::Result<const Weight *> Weights::find(const std::string &name, const std::vector<int64_t> &shape) const {
  const auto found = tensors.find(name);
  if (found == tensors.end())
    return api::Status(HEDDLE_NOT_FOUND, "weights: there is no tensor " + name);
  const std::vector<int64_t> &own = found->second.shape;
  bool fits = own.size() == shape.size();
  for (size_t i = 0; fits && i < own.size(); ++i)
    fits = own[i] > 0 && (shape[i] == 0 || shape[i] == own[i]);
  if (!fits)
    return api::Status(HEDDLE_INVALID_ARGUMENT,
                       "weights: " + name + ": expected " + textOf(shape) + ", got " + textOf(own));
  return &found->second;
}

api::Result<int64_t> Weights::number(const std::string &name) const {
  const auto found = metadata.find(name);
  if (found == metadata.end())
    return api::Status(HEDDLE_NOT_FOUND, "weights: __metadata__ does not say " + name);
  const std::string &text = found->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return api::Status(HEDDLE_INVALID_ARGUMENT,
                       "weights: __metadata__: " + name + ": expected a whole number, got " + text);
  return value;
}

} // namespace server
