#include "RealNvrtc.h"

#include "runtime/Core/Digest.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <filesystem>
#include <link.h>

namespace heddle::kept {
namespace {

namespace fs = std::filesystem;

struct BuildIdQuery {
  const void *base;
  std::string id;
};

// The bytes of the note NT_GNU_BUILD_ID in one segment of notes; empty without one.
std::string buildIdIn(const char *notes, size_t bytes) {
  const auto padded = [](size_t size) { return (size + 3) & ~size_t(3); };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const size_t size = sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
    if (size > bytes)
      break;
    const char *owner = notes + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(owner, "GNU", 4) == 0)
      return std::string(owner + 4, note.n_descsz);
    notes += size;
    bytes -= size;
  }
  return {};
}

int lookForBuildId(dl_phdr_info *object, size_t, void *data) {
  BuildIdQuery &query = *static_cast<BuildIdQuery *>(data);
  if (reinterpret_cast<const void *>(object->dlpi_addr) != query.base)
    return 0;
  for (int i = 0; i < object->dlpi_phnum && query.id.empty(); ++i)
    if (const ElfW(Phdr) &part = object->dlpi_phdr[i]; part.p_type == PT_NOTE)
      query.id = buildIdIn(reinterpret_cast<const char *>(object->dlpi_addr + part.p_vaddr), part.p_memsz);
  return 1;
}

std::string buildIdOf(const NvrtcLibrary &nvrtc) {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void *>(nvrtc.functions().version), &info))
    return {};
  BuildIdQuery query = {info.dli_fbase, {}};
  dl_iterate_phdr(lookForBuildId, &query);
  return query.id;
}

std::string identify(const NvrtcLibrary &nvrtc) {
  std::error_code error;
  const std::string file = nvrtc.loadedFile();
  const std::string id = buildIdOf(nvrtc);
  const std::string size = std::to_string(fs::file_size(file, error));
  return size + (id.empty() ? " of " + std::to_string(fs::last_write_time(file, error).time_since_epoch().count())
                            : " is " + id);
}

} // namespace

const NvrtcLibrary *realNvrtc() {
  static const auto library = [] {
    const char *behind = std::getenv("HEDDLE_NVRTC_BEHIND");
    NvrtcSearch search = NvrtcSearch::fromEnvironment();
    search.library = behind ? behind : "";
    return NvrtcLibrary::open(search);
  }();
  return library.isOk() ? library->get() : nullptr;
}

std::string nameOf(const NvrtcLibrary &nvrtc, const ProgramText &program, const std::vector<std::string> &options) {
  static const std::string library = identify(nvrtc);
  Sha256 digest;
  // Every part is preceded by its length, so that no two lists of parts read alike.
  auto add = [&](std::string_view part) { digest.update(std::to_string(part.size()) + ":").update(part); };
  auto addAll = [&](const std::vector<std::string> &parts) {
    add(std::to_string(parts.size()));
    for (const std::string &part : parts)
      add(part);
  };
  add(nvrtc.versionText());
  add(library);
  add(program.name);
  add(program.text);
  addAll(program.headerNames);
  addAll(program.headerTexts);
  addAll(options);
  return digest.hex();
}

bool dependsOnTextAlone(const std::vector<std::string> &options) {
  constexpr std::string_view kOther[] = {"I",          "include", "pre-include", "pch",
                                         "create-pch", "use-pch", "time",        "fdevice-time-trace"};
  for (const std::string &option : options) {
    const size_t dashes = std::min<size_t>(option.find_first_not_of('-'), option.size());
    for (std::string_view other : kOther)
      if (dashes > 0 && option.compare(dashes, other.size(), other) == 0)
        return false;
  }
  return true;
}

} // namespace heddle::kept
