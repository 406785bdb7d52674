#include "runtime/Core/ReadFile.h"
#include "runtime/Core/SafeText.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle {
namespace {

class OpenFile {
public:
  OpenFile(const std::string &path, bool isStdin)
      : fd(isStdin ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)), isOwn(!isStdin) {}
  OpenFile(const OpenFile &) = delete;
  ~OpenFile() {
    if (isOwn && fd >= 0)
      ::close(fd);
  }
  const int fd;

private:
  const bool isOwn;
};

std::string nameOf(const std::string &path, const TextFile &file) {
  return std::string(file.what) + " '" + safeLine(path, 4096) + "'";
}

Status refused(const std::string &path, const TextFile &file, int error) {
  const std::string message = "cannot read " + nameOf(path, file) + ": " + std::strerror(error);
  return error == ENOENT || error == ENOTDIR ? Status::notFound(message) : Status::io(message);
}

Status tooLong(const std::string &path, const TextFile &file) {
  return Status::invalidArgument(nameOf(path, file) + ": expected at most " + std::to_string(file.mostBytes) +
                                 " bytes, got more");
}

} // namespace

Result<std::string> readTextFile(const std::string &path, const TextFile &file) {
  OpenFile opened(path, file.readsStdin && path == "-");
  struct stat info;
  if (opened.fd < 0 || ::fstat(opened.fd, &info) != 0)
    return refused(path, file, errno);
  if (S_ISDIR(info.st_mode))
    return Status::invalidArgument("cannot read " + nameOf(path, file) + ": " + std::strerror(EISDIR));
  if (S_ISREG(info.st_mode) && info.st_size > file.mostBytes)
    return tooLong(path, file);
  constexpr size_t kPiece = 65536;
  std::string text;
  for (;;) {
    const size_t held = text.size();
    text.resize(held + kPiece);
    const ssize_t got = ::read(opened.fd, text.data() + held, kPiece);
    text.resize(held + size_t(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno != EINTR)
      return refused(path, file, errno);
    if (int64_t(text.size()) > file.mostBytes)
      return tooLong(path, file);
    if (got == 0)
      return text;
  }
}

} // namespace heddle
