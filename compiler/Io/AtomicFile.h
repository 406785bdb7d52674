// Owns the way every artefact of the compiler reaches the disk: written in a PartFolder beside it,
// flushed, renamed. A process killed at any point leaves the old file as it was.
#pragma once

#include "runtime/Core/PartFolder.h"
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heddle {

// Move-only. Destroyed before publish(): the temporary file is removed, the target is untouched.
class AtomicFile {
public:
  // A link is followed. invalidArgument when the path names something that is not a regular file,
  // io or denied when the folder is missing or not writable.
  static Result<AtomicFile> create(const std::string &path);
  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&other) = delete;
  ~AtomicFile();

  Status write(const void *data, size_t bytes);
  // Makes the file so long, with room for it on the disk where the file system can promise that: io, now and not when the
  // room is used. What is not written then is 0.
  Status reserve(uint64_t bytes);
  // At an offset, whatever was written elsewhere. Thread-safe.
  Status writeAt(uint64_t offset, const void *data, size_t bytes);
  // Once, at the end: flush, then take the target's name.
  Status publish();

private:
  AtomicFile(PartFolder folder, std::string target);
  Status failed(const char *operation) const;

  PartFolder folder;
  std::string target;
  int fd = -1;
};

// The whole of `text` under `path`, or nothing.
Status writeFileAtomically(const std::string &path, std::string_view text);

} // namespace heddle
