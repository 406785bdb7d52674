#include "compiler/Io/AtomicFile.h"
#include "compiler/Io/Safetensors.h"
#include <algorithm>
#include <nlohmann/json.hpp>

namespace heddle {

namespace {

// A tensor as it goes to the file.
struct NamedTensor {
  std::string name;
  DType element;
  const std::vector<int64_t> *shape;
  const std::vector<std::byte> *data;
  uint64_t bytes;
};

} // namespace

static Status checkTensors(const std::map<std::string, const HostTensor *> &tensors, const std::string &path) {
  for (const auto &[name, tensor] : tensors) {
    if (name == "__metadata__")
      return Status::invalidArgument("tensor file '" + path + "': no tensor may be called '__metadata__'");
    const std::optional<int64_t> bytes = bytesOf(tensor->shape, dtypeBytes(tensor->dtype));
    if (!bytes || tensor->data.size() != size_t(*bytes))
      return Status::invalidArgument("tensor file '" + path + "': tensor '" + name + "' holds " +
                                     std::to_string(tensor->data.size()) + " bytes, its shape " +
                                     shapeText(tensor->shape) + " needs " +
                                     (bytes ? std::to_string(*bytes) : "more than there are"));
  }
  return {};
}

// Wider elements first keeps every tensor aligned to its own element size.
static void sortWide(std::vector<NamedTensor> &order) {
  std::sort(order.begin(), order.end(), [](const NamedTensor &a, const NamedTensor &b) {
    const int64_t bytes = dtypeBytes(a.element), others = dtypeBytes(b.element);
    return bytes != others ? bytes > others : a.name < b.name;
  });
}

static std::vector<NamedTensor> layout(const std::map<std::string, const HostTensor *> &tensors,
                                       const std::map<std::string, OperandTensor> &operands) {
  std::vector<NamedTensor> order;
  for (const auto &[name, tensor] : tensors)
    order.push_back({name, tensor->dtype, &tensor->shape, &tensor->data, tensor->data.size()});
  for (const auto &[name, tensor] : operands)
    order.push_back({name, tensor.element, &tensor.shape, tensor.data.get(), tensor.data->size()});
  sortWide(order);
  return order;
}

// The size prefix and the JSON text, padded with blanks so that the data starts at a multiple of 8.
static std::string headerBytes(const std::vector<NamedTensor> &order,
                               const std::map<std::string, std::string> &metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const NamedTensor &tensor : order) {
    uint64_t end = at + tensor.bytes;
    header[tensor.name] = {
        {"dtype", traitsOf(tensor.element).fileName}, {"shape", *tensor.shape}, {"data_offsets", {at, end}}};
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
                        const std::map<std::string, std::string> &metadata,
                        const std::map<std::string, OperandTensor> &operands) {
  HEDDLE_TRY(checkTensors(tensors, path));
  for (const auto &[name, tensor] : operands)
    if (tensors.count(name) || name == "__metadata__")
      return Status::invalidArgument("tensor file '" + path + "': two tensors cannot be called '" + name + "'");
  std::vector<NamedTensor> order = layout(tensors, operands);
  HEDDLE_ASSIGN(AtomicFile file, AtomicFile::create(path));
  std::string header = headerBytes(order, metadata);
  HEDDLE_TRY(file.write(header.data(), header.size()));
  for (const NamedTensor &tensor : order)
    HEDDLE_TRY(file.write(tensor.data->data(), tensor.data->size()));
  return file.publish();
}

Result<SafetensorsPieces> SafetensorsPieces::create(const std::string &path,
                                                    const std::map<std::string, HostTensor> &tensors,
                                                    const std::map<std::string, std::string> &metadata) {
  std::vector<NamedTensor> order;
  for (const auto &[name, tensor] : tensors) {
    const std::optional<int64_t> bytes = bytesOf(tensor.shape, dtypeBytes(tensor.dtype));
    if (!bytes)
      return Status::invalidArgument("tensor file '" + path + "': tensor '" + name + "' " + shapeText(tensor.shape) +
                                     " has more elements than there are numbers for");
    order.push_back({name, tensor.dtype, &tensor.shape, nullptr, uint64_t(*bytes)});
  }
  sortWide(order);
  HEDDLE_ASSIGN(AtomicFile file, AtomicFile::create(path));
  SafetensorsPieces pieces(std::move(file));
  const std::string header = headerBytes(order, metadata);
  uint64_t at = header.size();
  for (const NamedTensor &tensor : order) {
    pieces.places[tensor.name] = {at, uint64_t(dtypeBytes(tensor.element))};
    at += tensor.bytes;
  }
  HEDDLE_TRY(pieces.file.reserve(at));
  HEDDLE_TRY(pieces.file.writeAt(0, header.data(), header.size()));
  return pieces;
}

Status SafetensorsPieces::write(const std::string &name, uint64_t first, const void *data, uint64_t elements) {
  const Place &place = places.at(name);
  return file.writeAt(place.offset + first * place.elementBytes, data, elements * place.elementBytes);
}

} // namespace heddle
