//===- HostKernel.cpp - from an image in memory to a function ---------------===//
#include "HostKernel.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <map>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace heddle::fake {
namespace {

// Images that tests make up are a few bytes long and look like ELF in the first four.
bool isSharedLibrary(const void *image) {
  constexpr unsigned char kOpening[] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
  const unsigned char *bytes = static_cast<const unsigned char *>(image);
  for (size_t i = 0; i < sizeof kOpening; ++i)
    if (bytes[i] != kOpening[i])
      return false;
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  return header.e_type == ET_DYN;
}

// The table of sections is the last thing in the files that linkers write.
size_t bytesOf(const void *image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  return header.e_shoff + size_t(header.e_shnum) * header.e_shentsize;
}

void *openLibrary(const std::string &bytes) {
  const int file = memfd_create("heddle_host_kernel", MFD_CLOEXEC);
  if (file < 0 || write(file, bytes.data(), bytes.size()) != ssize_t(bytes.size()))
    return nullptr;
  void *library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    std::fprintf(stderr, "fake driver: %s\n", dlerror());
  return library; // the file stays open: a later one of the same number would be taken for this library
}

} // namespace

HostKernel openHostKernel(const void *image, const char *entry) {
  if (!isSharedLibrary(image))
    return nullptr;
  static auto *opened = new std::map<std::string, void *>;
  const auto [place, isNew] =
      opened->try_emplace(std::string(static_cast<const char *>(image), bytesOf(image)), nullptr);
  if (isNew)
    place->second = openLibrary(place->first);
  return place->second ? reinterpret_cast<HostKernel>(dlsym(place->second, entry)) : nullptr;
}

} // namespace heddle::fake
