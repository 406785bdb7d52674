//===- SafetensorsWriter.cpp - writes a tensor file whole or not at all --------===//
#include "compiler/Io/AtomicFile.h"
#include "compiler/Io/Safetensors.h"
#include <algorithm>
#include <nlohmann/json.hpp>

namespace heddle {

using NamedTensor = std::pair<std::string, const HostTensor *>;

static const char *fileDType(DType dtype) {
  return dtype == DType::bf16 ? "BF16" : dtype == DType::fp16 ? "F16" : "F32";
}

static Status checkTensors(const std::map<std::string, const HostTensor *> &tensors, const std::string &path) {
  for (const auto &[name, tensor] : tensors) {
    if (name == "__metadata__")
      return Status::invalidArgument("tensor file '" + path + "': no tensor may be called '__metadata__'");
    if (static_cast<int64_t>(tensor->data.size()) != tensor->elements() * dtypeBytes(tensor->dtype))
      return Status::invalidArgument("tensor file '" + path + "': tensor '" + name + "' holds " +
                                     std::to_string(tensor->data.size()) + " bytes, its shape " +
                                     shapeText(tensor->shape) + " needs " +
                                     std::to_string(tensor->elements() * dtypeBytes(tensor->dtype)));
  }
  return {};
}

// Wider elements first keeps every tensor aligned to its own element size.
static std::vector<NamedTensor> layout(const std::map<std::string, const HostTensor *> &tensors) {
  std::vector<NamedTensor> order(tensors.begin(), tensors.end());
  std::sort(order.begin(), order.end(), [](const NamedTensor &a, const NamedTensor &b) {
    int64_t widthA = dtypeBytes(a.second->dtype), widthB = dtypeBytes(b.second->dtype);
    return widthA != widthB ? widthA > widthB : a.first < b.first;
  });
  return order;
}

// The size prefix and the JSON text, padded with blanks so that the data starts at a multiple of 8.
static std::string headerBytes(const std::vector<NamedTensor> &order,
                               const std::map<std::string, std::string> &metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const auto &[name, tensor] : order) {
    uint64_t end = at + tensor->data.size();
    header[name] = {{"dtype", fileDType(tensor->dtype)}, {"shape", tensor->shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string prefix;
  for (int i = 0; i < 8; ++i)
    prefix.push_back(static_cast<char>(static_cast<uint64_t>(text.size()) >> (8 * i)));
  return prefix + text;
}

Status writeSafetensors(const std::string &path, const std::map<std::string, const HostTensor *> &tensors,
                        const std::map<std::string, std::string> &metadata) {
  HEDDLE_TRY(checkTensors(tensors, path));
  std::vector<NamedTensor> order = layout(tensors);
  HEDDLE_ASSIGN(AtomicFile file, AtomicFile::create(path));
  std::string header = headerBytes(order, metadata);
  HEDDLE_TRY(file.write(header.data(), header.size()));
  for (const NamedTensor &tensor : order)
    HEDDLE_TRY(file.write(tensor.second->data.data(), tensor.second->data.size()));
  return file.publish();
}

} // namespace heddle
