#include "KeptResults.h"

#include "runtime/Core/Digest.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace heddle::kept {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirstLine = "heddle kept nvrtc 1\n";
constexpr size_t kDigestBytes = 64;

void append(std::string &text, std::string_view field) {
  text.append(std::to_string(field.size())).append(":").append(field);
}

std::optional<size_t> takeNumber(std::string_view &text, char end) {
  size_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop == text.data() + text.size() || *stop != end)
    return std::nullopt;
  text.remove_prefix(static_cast<size_t>(stop - text.data()) + 1);
  return value;
}

std::optional<std::string> takeField(std::string_view &text) {
  const std::optional<size_t> length = takeNumber(text, ':');
  if (!length || *length > text.size())
    return std::nullopt;
  std::string field(text.substr(0, *length));
  text.remove_prefix(*length);
  return field;
}

void append(std::string &text, const Output &output) {
  append(text, std::to_string(output.code));
  append(text, output.bytes);
}

std::optional<int> takeCode(std::string_view &text) {
  const std::optional<std::string> field = takeField(text);
  int code = 0;
  if (!field || std::from_chars(field->data(), field->data() + field->size(), code).ec != std::errc())
    return std::nullopt;
  return code;
}

bool take(std::string_view &text, Output &output) {
  const std::optional<int> code = takeCode(text);
  std::optional<std::string> bytes = code ? takeField(text) : std::nullopt;
  if (!bytes)
    return false;
  output = {*code, std::move(*bytes)};
  return true;
}

std::string digestOf(const std::string &name, std::string_view body) {
  return Sha256().update(name).update(body).hex();
}

std::string textOf(const std::string &name, const Compilation &result) {
  std::string body;
  append(body, std::to_string(result.code));
  for (const Output *output : {&result.log, &result.ptx, &result.cubin})
    append(body, *output);
  return std::string(kFirstLine) + digestOf(name, body) + body;
}

std::optional<Compilation> read(const std::string &name, std::string_view text) {
  if (text.substr(0, kFirstLine.size()) != kFirstLine || text.size() < kFirstLine.size() + kDigestBytes)
    return std::nullopt;
  text.remove_prefix(kFirstLine.size());
  const std::string_view digest = text.substr(0, kDigestBytes);
  text.remove_prefix(kDigestBytes);
  if (digestOf(name, text) != digest)
    return std::nullopt;
  Compilation result;
  const std::optional<int> code = takeCode(text);
  if (!code || !take(text, result.log) || !take(text, result.ptx) || !take(text, result.cubin) || !text.empty())
    return std::nullopt;
  result.code = *code;
  return result;
}

bool write(const std::string &file, const std::string &text) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  return stream.good();
}

} // namespace

std::optional<Compilation> ResultFolder::find(const std::string &name) const {
  const std::string file = fileOf(name);
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    return std::nullopt;
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  std::optional<Compilation> result = read(name, bytes.str());
  std::error_code ignored;
  if (result)
    fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
  return result;
}

void ResultFolder::keep(const std::string &name, const Compilation &result) const {
  std::error_code error;
  fs::create_directories(folder, error);
  const std::string file = fileOf(name);
  std::string beside = file + ".XXXXXX";
  const int descriptor = mkstemp(beside.data());
  if (descriptor < 0)
    return;
  close(descriptor);
  if (write(beside, textOf(name, result)))
    fs::rename(beside, file, error);
  fs::remove(beside, error); // of no effect after the renaming
}

std::string withZeroTimes(std::string_view log) {
  constexpr std::string_view kLabel = "Compile time = ";
  std::string text;
  for (size_t at = log.find(kLabel); at != std::string_view::npos; at = log.find(kLabel)) {
    text.append(log.substr(0, at + kLabel.size())).append("0.000");
    log.remove_prefix(at + kLabel.size());
    log.remove_prefix(std::min(log.find_first_not_of("0123456789."), log.size()));
  }
  return text.append(log);
}

} // namespace heddle::kept
