// Every size in a header is hostile until it was compared with the file's real size; products are
// formed with overflow checks. Nothing is allocated by a number from the header alone.
#include "compiler/Io/Memory.h"
#include "compiler/Io/Safetensors.h"
#include "runtime/Core/SafeText.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle {

using Json = nlohmann::json;

// The limit that the format's own library has.
static constexpr uint64_t kMaxHeaderBytes = 100'000'000;

static Status corrupt(const std::string &path, const std::string &what) {
  return Status::corrupt("tensor file '" + path + "': " + what);
}

static Status readExactly(int fd, void *into, uint64_t bytes, uint64_t offset, const std::string &path) {
  char *at = static_cast<char *>(into);
  while (bytes > 0) {
    ssize_t got = pread(fd, at, std::min<uint64_t>(bytes, 1u << 30), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return Status::io("tensor file '" + path + "': cannot read: " + std::strerror(errno));
    if (got == 0)
      return corrupt(path, "became shorter while it was read");
    at += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return {};
}

// Nothing for names that this version does not know; their sizes cannot be checked.
static std::optional<int64_t> elementBytes(const TensorEntry &entry) {
  static const std::map<std::string, int64_t> others = {{"F64", 8},     {"U64", 8},    {"U32", 4}, {"I16", 2},
                                                        {"U16", 2},     {"I8", 1},     {"U8", 1},  {"BOOL", 1},
                                                        {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  if (entry.dtype)
    return dtypeBytes(*entry.dtype);
  auto found = others.find(entry.fileDType);
  return found == others.end() ? std::nullopt : std::optional<int64_t>(found->second);
}

namespace {

// What the text of a header must be checked for before it becomes values: a name that stands twice, which the values
// would not show, and how many values there are. (The parser's own callbacks cost a walk over all tensors for every
// tensor.)
class HeaderWatch : public nlohmann::json_sax<Json> {
public:
  std::optional<std::string> twice;
  bool isTooLarge = false;

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(int64_t) override { return count(); }
  bool number_unsigned(uint64_t) override { return count(); }
  bool number_float(double, const std::string &) override { return count(); }
  bool string(std::string &) override { return count(); }
  bool binary(Json::binary_t &) override { return count(); }
  bool start_object(size_t) override { return ++depth, count(); }
  bool end_object() override { return --depth, true; }
  bool start_array(size_t) override { return ++depth, count(); }
  bool end_array() override { return --depth, true; }
  bool key(std::string &name) override {
    if (depth == 1 && !twice && !names.insert(name).second)
      twice = name;
    return count();
  }
  bool parse_error(size_t, const std::string &, const nlohmann::detail::exception &) override { return false; }

private:
  static constexpr int64_t kMostValues = 8'000'000; // half a million tensors, a gigabyte of values
  bool count() {
    isTooLarge = ++values > kMostValues;
    return !isTooLarge;
  }
  int64_t values = 0;
  int depth = 0;
  std::set<std::string> names;
};

} // namespace

static Result<Json> parseHeader(const std::string &text, const std::string &path) {
  HeaderWatch watch;
  const bool isJson = Json::sax_parse(text, &watch);
  if (watch.isTooLarge)
    return corrupt(path, "the header holds too many values to be true; expected a safetensors file");
  Json header = isJson ? Json::parse(text, nullptr, /*allow_exceptions=*/false) : Json();
  if (!header.is_object())
    return corrupt(path, "the header is not a JSON object; expected a safetensors file");
  if (watch.twice)
    return corrupt(path, "the header names '" + safeLine(*watch.twice) + "' twice");
  return header;
}

static bool isSizeList(const Json &value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json &size) {
           return size.is_number_unsigned() && size.get<uint64_t>() <= INT64_MAX;
         });
}

static Result<TensorEntry> parseEntry(const std::string &name, const Json &value, const std::string &path) {
  std::string who = "tensor '" + safeLine(name) + "' ";
  if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string() || !value.contains("shape") ||
      !isSizeList(value["shape"]) || !value.contains("data_offsets") || !isSizeList(value["data_offsets"]) ||
      value["data_offsets"].size() != 2)
    return corrupt(path, who + "needs a dtype, a shape of non-negative integers and two data_offsets");
  TensorEntry entry;
  entry.fileDType = value["dtype"].get<std::string>();
  entry.dtype = findElement(&ElementTraits::fileName, entry.fileDType);
  entry.shape = value["shape"].get<std::vector<int64_t>>();
  entry.begin = value["data_offsets"][0].get<uint64_t>();
  entry.end = value["data_offsets"][1].get<uint64_t>();
  if (entry.begin > entry.end)
    return corrupt(path, who + "ends before it begins");
  std::optional<int64_t> element = elementBytes(entry);
  if (!element)
    return entry;
  std::optional<int64_t> expected = bytesOf(entry.shape, *element);
  if (!expected)
    return corrupt(path, who + "has a shape too large to be true: " + shapeText(entry.shape));
  if (entry.end - entry.begin != uint64_t(*expected))
    return corrupt(path, who + safeLine(entry.fileDType) + " " + shapeText(entry.shape) + " needs " +
                             std::to_string(*expected) + " bytes, its data_offsets give " +
                             std::to_string(entry.end - entry.begin));
  return entry;
}

// The tensors must cover the data section exactly: one after the other, up to the end.
static Status checkCoverage(const std::map<std::string, TensorEntry> &entries, uint64_t dataBytes,
                            const std::string &path) {
  std::vector<std::pair<const std::string *, const TensorEntry *>> order;
  for (const auto &[name, entry] : entries)
    order.push_back({&name, &entry});
  std::sort(order.begin(), order.end(), [](const auto &a, const auto &b) {
    return std::make_pair(a.second->begin, a.second->end) < std::make_pair(b.second->begin, b.second->end);
  });
  uint64_t at = 0;
  for (const auto &[name, entry] : order) {
    if (entry->end > dataBytes)
      return corrupt(path, "cut short: tensor '" + safeLine(*name) + "' ends at byte " + std::to_string(entry->end) +
                               " of the data, the file holds " + std::to_string(dataBytes));
    if (entry->begin != at)
      return corrupt(path, "tensor '" + safeLine(*name) + "' begins at byte " + std::to_string(entry->begin) +
                               " of the data, expected " + std::to_string(at) +
                               (entry->begin < at ? " (it overlaps its neighbour)" : " (a gap)"));
    at = entry->end;
  }
  if (at != dataBytes)
    return corrupt(path, std::to_string(dataBytes - at) + " bytes behind the last tensor");
  return {};
}

static Status readNotes(const Json &value, std::map<std::string, std::string> &notes, const std::string &path) {
  if (!value.is_object())
    return corrupt(path, "__metadata__ is not a JSON object");
  for (const auto &[key, note] : value.items()) {
    if (!note.is_string())
      return corrupt(path, "__metadata__ '" + safeLine(key) + "' is not a string");
    notes[key] = note.get<std::string>();
  }
  return {};
}

static Result<int> openToRead(const std::string &path, uint64_t &fileBytes) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe without a writer is told, not waited for
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
    return Status::notFound("tensor file '" + path + "' does not exist");
  if (fd < 0)
    return Status::io("tensor file '" + path + "': cannot open: " + std::strerror(errno));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return Status::invalidArgument("tensor file '" + path +
                                   "': expected a regular file, whose tensors are read where they lie: a pipe or a "
                                   "folder has no such places; write what it gives to a file first");
  }
  fileBytes = static_cast<uint64_t>(info.st_size);
  return fd;
}

static Result<std::string> readHeaderText(int fd, uint64_t fileBytes, const std::string &path) {
  unsigned char prefix[8];
  if (fileBytes < sizeof prefix)
    return corrupt(path, "has " + std::to_string(fileBytes) + " bytes; a safetensors file has at least 8");
  HEDDLE_TRY(readExactly(fd, prefix, sizeof prefix, 0, path));
  uint64_t headerBytes = 0;
  for (int i = 7; i >= 0; --i)
    headerBytes = headerBytes << 8 | prefix[i];
  if (headerBytes > kMaxHeaderBytes)
    return corrupt(path, "claims a header of " + std::to_string(headerBytes) + " bytes; expected a safetensors file");
  if (headerBytes > fileBytes - sizeof prefix)
    return corrupt(path, "cut short: the header needs " + std::to_string(headerBytes) + " bytes, the file holds " +
                             std::to_string(fileBytes - sizeof prefix));
  std::string text(headerBytes, ' ');
  HEDDLE_TRY(readExactly(fd, text.data(), headerBytes, sizeof prefix, path));
  return text;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  SafetensorsFile file;
  file.filePath = path;
  uint64_t fileBytes = 0;
  HEDDLE_ASSIGN(int fd, openToRead(path, fileBytes));
  file.descriptor = std::shared_ptr<const int>(new int(fd), [](const int *held) {
    ::close(*held);
    delete held;
  });
  HEDDLE_ASSIGN(std::string text, readHeaderText(fd, fileBytes, path));
  file.dataStart = 8 + text.size();
  HEDDLE_ASSIGN(Json header, parseHeader(text, path));
  for (const auto &[name, value] : header.items()) {
    if (name == "__metadata__") {
      HEDDLE_TRY(readNotes(value, file.notes, path));
      continue;
    }
    HEDDLE_ASSIGN(file.tensors[name], parseEntry(name, value, path));
  }
  HEDDLE_TRY(checkCoverage(file.tensors, fileBytes - file.dataStart, path));
  return file;
}

Result<const TensorEntry *> SafetensorsFile::find(const std::string &name) const {
  auto found = tensors.find(name);
  if (found == tensors.end()) {
    constexpr size_t kMostNames = 30;
    std::string names;
    size_t count = 0;
    for (auto entry = tensors.begin(); entry != tensors.end() && count < kMostNames; ++entry, ++count)
      names += (names.empty() ? "'" : ", '") + safeLine(entry->first) + "'";
    if (tensors.size() > count)
      names += " and " + std::to_string(tensors.size() - count) + " more";
    return Status::notFound("tensor file '" + filePath + "' has no tensor '" + safeLine(name) + "'; it has " +
                            (names.empty() ? "none" : names));
  }
  return &found->second;
}

Status SafetensorsFile::checkRoom(const std::string &name, const TensorEntry &entry) const {
  return checkMemory("tensor file '" + filePath + "': tensor '" + safeLine(name) + "' " + shapeText(entry.shape),
                     double(entry.end - entry.begin), "give a smaller file, or more memory");
}

Status SafetensorsFile::readBytes(const TensorEntry &entry, uint64_t first, uint64_t bytes, void *to) const {
  return readExactly(*descriptor, to, bytes, dataStart + entry.begin + first, filePath);
}

Result<HostTensor> SafetensorsFile::describe(const std::string &name) const {
  HEDDLE_ASSIGN(const TensorEntry *entry, find(name));
  HEDDLE_TRY(checkElement(name, *entry, &ElementTraits::isOfCalls));
  return HostTensor{*entry->dtype, entry->shape, {}};
}

Status SafetensorsFile::readData(const TensorEntry &entry, std::byte *to) const {
  return readExactly(*descriptor, to, entry.end - entry.begin, dataStart + entry.begin, filePath);
}

Status SafetensorsFile::checkElement(const std::string &name, const TensorEntry &entry, ElementSet set) const {
  if (entry.dtype && (traitsOf(*entry.dtype).*set)())
    return {};
  return Status::unsupported("tensor file '" + filePath + "': tensor '" + safeLine(name) + "' is " +
                             safeLine(entry.fileDType) + "; expected " + elementList(set, &ElementTraits::fileName));
}

Result<HostTensor> SafetensorsFile::read(const std::string &name, ElementSet set) const {
  HEDDLE_ASSIGN(const TensorEntry *entry, find(name));
  HEDDLE_TRY(checkElement(name, *entry, set));
  HEDDLE_TRY(checkRoom(name, *entry));
  HostTensor tensor = HostTensor::zeros(*entry->dtype, entry->shape);
  HEDDLE_TRY(readData(*entry, tensor.data.data()));
  return tensor;
}

Result<OperandTensor> SafetensorsFile::readOperand(const std::string &name) const {
  HEDDLE_ASSIGN(const TensorEntry *entry, find(name));
  HEDDLE_TRY(checkElement(name, *entry, &ElementTraits::isKnown));
  HEDDLE_TRY(checkRoom(name, *entry));
  auto data = std::make_shared<std::vector<std::byte>>(entry->end - entry->begin);
  HEDDLE_TRY(readData(*entry, data->data()));
  return OperandTensor{*entry->dtype, entry->shape, std::move(data)};
}

} // namespace heddle
