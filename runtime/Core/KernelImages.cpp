#include "runtime/Core/KernelImages.h"
#include "runtime/Core/Digest.h"

#include <algorithm>
#include <charconv>

namespace heddle {
namespace {

constexpr std::string_view kHeader = "heddle-images 1";

// The sizes in the first line behind the header; nothing if it is no such line.
bool readSizes(std::string_view line, std::vector<size_t> &sizes) {
  while (!line.empty()) {
    size_t bytes = 0;
    auto [end, error] = std::from_chars(line.data() + 1, line.data() + line.size(), bytes);
    if (line.front() != ' ' || error != std::errc())
      return false;
    sizes.push_back(bytes);
    line.remove_prefix(size_t(end - line.data()));
  }
  return true;
}

} // namespace

std::string contentKeyOf(const std::vector<std::string> &codeKeys, std::string_view plan) {
  Sha256 digest;
  for (const std::string &key : codeKeys)
    digest.update(key).update("\n");
  return digest.update(plan).hex();
}

std::string joinImages(const std::vector<std::string> &images) {
  if (images.size() == 1)
    return images.front();
  if (std::all_of(images.begin(), images.end(), [](const std::string &image) { return image.empty(); }))
    return {};
  std::string text(kHeader);
  for (const std::string &image : images)
    text += " " + std::to_string(image.size());
  text += '\n';
  for (const std::string &image : images)
    (text += image) += '\0';
  return text;
}

Result<std::vector<std::string_view>> splitImages(std::string_view text, size_t count) {
  if (count == 1 || text.substr(0, kHeader.size()) != kHeader)
    return std::vector<std::string_view>{text};
  auto fail = [&](const std::string &got) {
    return Status::corrupt("kernel code: expected " + std::to_string(count) + " images, got " + got);
  };
  const size_t lineEnd = text.find('\n');
  if (lineEnd == std::string_view::npos)
    return fail("none behind the first line");
  std::vector<size_t> sizes;
  if (!readSizes(text.substr(kHeader.size(), lineEnd - kHeader.size()), sizes) || sizes.size() != count)
    return fail("other sizes in the first line");
  std::vector<std::string_view> images;
  text.remove_prefix(lineEnd + 1);
  for (size_t bytes : sizes) {
    if (text.empty() || bytes > text.size() - 1 || text[bytes] != '\0')
      return fail("fewer bytes than the first line says");
    images.push_back(text.substr(0, bytes));
    text.remove_prefix(bytes + 1);
  }
  if (!text.empty())
    return fail("more bytes than the first line says");
  return images;
}

} // namespace heddle
