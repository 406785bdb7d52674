#include "compiler/Io/AtomicFile.h"
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle {

// The file behind a link, so that a rename replaces the file and not the link.
static std::string behindLinks(const std::string &path) {
  char *resolved = ::realpath(path.c_str(), nullptr);
  std::string target = resolved ? resolved : path;
  std::free(resolved);
  return target;
}

static std::string partOf(const PartFolder &folder) { return folder.file("part"); }

Result<AtomicFile> AtomicFile::create(const std::string &path) {
  struct stat info;
  bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode))
    return Status::invalidArgument("cannot write '" + path + "': it exists and is not a regular file");
  std::string target = exists ? behindLinks(path) : path;
  Result<PartFolder> folder = PartFolder::beside(target);
  if (!folder)
    return Status(folder.status().code(), "cannot write " + folder.status().message());
  AtomicFile file(folder.take(), std::move(target));
  if (file.fd < 0)
    return file.failed("create a file beside it");
  return file;
}

AtomicFile::AtomicFile(PartFolder made, std::string target)
    : folder(std::move(made)), target(std::move(target)),
      fd(::open(partOf(folder).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : folder(std::move(other.folder)), target(std::move(other.target)), fd(other.fd) {
  other.fd = -1;
}

AtomicFile::~AtomicFile() {
  if (fd >= 0)
    ::close(fd);
}

Status AtomicFile::failed(const char *operation) const {
  return Status::io("cannot write '" + target + "': " + operation + ": " + std::strerror(errno));
}

Status AtomicFile::write(const void *data, size_t bytes) {
  const char *at = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t put = ::write(fd, at, std::min<size_t>(bytes, 1u << 30));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return failed("write");
    at += put;
    bytes -= static_cast<size_t>(put);
  }
  return {};
}

Status AtomicFile::reserve(uint64_t bytes) {
  int failure = bytes ? ::fallocate(fd, 0, 0, off_t(bytes)) : 0;
  if (failure != 0 && errno == EOPNOTSUPP) // no such promise here
    failure = ::ftruncate(fd, off_t(bytes));
  return failure == 0 ? Status() : failed("make room for it");
}

Status AtomicFile::writeAt(uint64_t offset, const void *data, size_t bytes) {
  const char *at = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t put = ::pwrite(fd, at, std::min<size_t>(bytes, 1u << 30), off_t(offset));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return failed("write");
    at += put;
    offset += uint64_t(put);
    bytes -= static_cast<size_t>(put);
  }
  return {};
}

Status AtomicFile::publish() {
  if (::fsync(fd) != 0 && errno != EINVAL)
    return failed("flush");
  if (::rename(partOf(folder).c_str(), target.c_str()) != 0)
    return failed("rename");
  ::close(fd);
  fd = -1;
  return {};
}

Status writeFileAtomically(const std::string &path, std::string_view text) {
  HEDDLE_ASSIGN(AtomicFile file, AtomicFile::create(path));
  HEDDLE_TRY(file.write(text.data(), text.size()));
  return file.publish();
}

} // namespace heddle
