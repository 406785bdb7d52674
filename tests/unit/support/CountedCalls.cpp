//===- CountedCalls.cpp - the calls that change files, in the place of the C library's ===//
#include "CountedCalls.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using heddle::test::CallCount;

namespace {

std::atomic<CallCount *> counted{nullptr};
bool isPreloaded = false, waitsForEnd = false;

// A program dies with all that its session's first process started, as those do that a terminal is closed on.
[[noreturn]] void die() {
  if (isPreloaded && !waitsForEnd)
    kill(-getsid(0), SIGKILL);
  if (!waitsForEnd)
    kill(getpid(), SIGKILL);
  for (;;)
    pause();
}

bool isFile(int descriptor) {
  struct stat state;
  return fstat(descriptor, &state) == 0 && S_ISREG(state.st_mode);
}

// Counts a call. True if it is the last one, and odd: the caller may do a half of it before it dies.
bool isTorn() {
  CallCount *count = counted;
  if (!count)
    return false;
  const int64_t number = count->made.fetch_add(1) + 1;
  if (number != count->last)
    return false;
  if (number % 2 == 0)
    die();
  return true;
}

void countWhole() {
  if (isTorn())
    die();
}

// Runs before main of a program that this file was preloaded into.
__attribute__((constructor)) void countWhereTold() {
  const char *path = std::getenv("HEDDLE_COUNTED_CALLS");
  const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0)
    return;
  void *memory = mmap(nullptr, sizeof(CallCount), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED)
    std::abort();
  isPreloaded = true;
  waitsForEnd = std::getenv("HEDDLE_WAITS_AT_CALL");
  counted = static_cast<CallCount *>(memory);
}

ssize_t writeAt(int descriptor, const void *bytes, size_t count, off64_t place) {
  if (isFile(descriptor) && isTorn()) {
    syscall(SYS_pwrite64, descriptor, bytes, count / 2, place);
    die();
  }
  return syscall(SYS_pwrite64, descriptor, bytes, count, place);
}

int cut(int descriptor, off64_t length) {
  countWhole();
  return int(syscall(SYS_ftruncate, descriptor, length));
}

} // namespace

void heddle::test::countCallsIn(CallCount *count) { counted = count; }

extern "C" {

ssize_t write(int descriptor, const void *bytes, size_t count) {
  if (isFile(descriptor) && isTorn()) {
    syscall(SYS_write, descriptor, bytes, count / 2);
    die();
  }
  return syscall(SYS_write, descriptor, bytes, count);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t place) {
  return writeAt(descriptor, bytes, count, place);
}
ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t place) {
  return writeAt(descriptor, bytes, count, place);
}

int ftruncate(int descriptor, off_t length) noexcept { return cut(descriptor, length); }
int ftruncate64(int descriptor, off64_t length) noexcept { return cut(descriptor, length); }

int fsync(int descriptor) {
  countWhole();
  return int(syscall(SYS_fsync, descriptor));
}

int fdatasync(int descriptor) {
  countWhole();
  return int(syscall(SYS_fdatasync, descriptor));
}

int rename(const char *from, const char *to) noexcept {
  countWhole();
  return int(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int renameat2(int fromFolder, const char *from, int toFolder, const char *to, unsigned flags) noexcept {
  countWhole();
  return int(syscall(SYS_renameat2, fromFolder, from, toFolder, to, flags));
}

int unlink(const char *path) noexcept {
  countWhole();
  return int(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

int remove(const char *path) noexcept {
  countWhole();
  if (syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0)
    return 0;
  return errno == EISDIR || errno == EPERM ? int(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR)) : -1;
}
}
