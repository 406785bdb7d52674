//===- memory_test.cpp - what is said before memory ends ------------------------===//
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Io/Memory.h"
#include "compiler/Io/Safetensors.h"
#include "scratch_fixture.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace heddle;
using namespace heddle::test;

namespace {

int64_t addressBytes() {
  long long pages = 0;
  std::sscanf(readFile("/proc/self/statm").c_str(), "%lld", &pages);
  return pages * ::sysconf(_SC_PAGESIZE);
}

/// Whether `holds` in a process that may take so many bytes more.
template <class F> bool holdsWith(int64_t bytes, const F &holds) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{rlim_t(addressBytes() + bytes), rlim_t(addressBytes() + bytes)};
    ::_exit(::setrlimit(RLIMIT_AS, &limit) == 0 && holds() ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool mentions(const Status &status, const std::string &text) {
  return status.message().find(text) != std::string::npos;
}

constexpr int64_t kHundredMb = 100'000'000;

} // namespace

TEST_CASE("numbers of bytes are short") {
  CHECK(memoryText(0) == "0 bytes");
  CHECK(memoryText(12.9e9) == "12.9 GB");
  CHECK(memoryText(1e6) == "1 MB");
}

TEST_CASE("what is there is more than a little and less than no end") {
  CHECK(availableMemory() > 1'000'000);
  CHECK(checkMemory("a little", 1000, "nothing").isOk());
  const Status status = checkMemory("all of it", 1e18, "take less");
  CHECK(status.code() == StatusCode::unavailable);
  CHECK(mentions(status, "all of it: 1 EB of memory are needed, "));
  CHECK(mentions(status, ": take less"));
}

#ifndef __SANITIZE_ADDRESS__
TEST_CASE("the limit of addresses counts") {
  CHECK(holdsWith(kHundredMb, [] {
    return availableMemory() <= kHundredMb && mentions(checkMemory("x", 2e8, "less"), "(ulimit -v)");
  }));
}

TEST_CASE("random inputs that do not fit are refused before they are made") {
  AttentionSizes sizes;
  sizes.batch = 1, sizes.seqlenQ = sizes.seqlenK = 1 << 20, sizes.heads = sizes.kvHeads = 32,
  sizes.headDim = sizes.valueDim = 64;
  CHECK(holdsWith(kHundredMb, [&] {
    const Status status = randomAttentionInputs(sizes, DType::bf16, 0).status();
    return status.code() == StatusCode::unavailable &&
           mentions(status, "random inputs: q, k and v: 12.9 GB of memory are needed, ");
  }));
}

TEST_CASE("a tensor of a file that does not fit is refused before it is read") {
  ScratchFolder folder;
  const std::string path = folder / "large.safetensors",
                    header = R"({"q":{"dtype":"F32","shape":[100000000],"data_offsets":[0,400000000]}})";
  const uint64_t length = header.size();
  writeFile(path, std::string(reinterpret_cast<const char *>(&length), 8) + header);
  std::filesystem::resize_file(path, 8 + length + 400000000); // a hole
  CHECK(holdsWith(kHundredMb, [&] {
    auto file = SafetensorsFile::open(path);
    return file.isOk() && mentions(file->read("q").status(), "tensor 'q' [100000000]: 400 MB of memory are needed, ");
  }));
}
#endif
