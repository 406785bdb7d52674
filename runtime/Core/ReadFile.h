// Owns how a whole text is read that somebody else wrote: files, pipes, devices, standard input. What has no end, or is
// far larger than any such text, is refused before it fills the memory.
#pragma once

#include "runtime/Core/Status.h"

#include <cstdint>

namespace heddle {

struct TextFile {
  const char *what; // "pattern file", as messages call it
  int64_t mostBytes = int64_t(1) << 20;
  bool readsStdin = false; // for the path "-"
};

// The bytes of a file. notFound: there is none; invalidArgument: a folder, or longer than `mostBytes`; io: the system
// refused.
Result<std::string> readTextFile(const std::string &path, const TextFile &file);

} // namespace heddle
