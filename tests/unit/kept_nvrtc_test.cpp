// libheddle_kept_nvrtc over NVRTC that counts: what is compiled, what is answered from the folder, what is taken for damaged.
#include "support/Places.h"
#include "codegen/Nvrtc/Compiler.h"
#include "tests/unit/process_fixture.h"
#include "tests/unit/scratch_fixture.h"

#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <functional>
#include <vector>

extern "C" int counting_nvrtc_compilations(void);

using namespace heddle;
namespace fs = std::filesystem;

namespace {

std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

// This test may itself run over the library that it tests; the NVRTC behind that one is the real one.
NvrtcSearch searchOfReal() {
  NvrtcSearch search = NvrtcSearch::fromEnvironment();
  if (search.library == test::places().keptNvrtc)
    search.library = environment("HEDDLE_NVRTC_BEHIND");
  return search;
}

// The library under test; null says why a test is skipped.
const NvrtcLibrary *keptNvrtc() {
  static const auto real = NvrtcLibrary::open(searchOfReal());
  if (!real.isOk()) {
    MESSAGE("skipped: " << real.status().message());
    return nullptr;
  }
  static const auto kept = [] {
    setenv("HEDDLE_REAL_NVRTC", (*real)->loadedFile().c_str(), 1);
    setenv("HEDDLE_NVRTC_BEHIND", test::places().countingNvrtc, 1);
    NvrtcSearch search;
    search.library = test::places().keptNvrtc;
    return NvrtcLibrary::open(search);
  }();
  REQUIRE_MESSAGE(kept.isOk(), kept.status().message());
  return kept->get();
}

KernelSource sourceOf(const std::string &body) {
  KernelSource source;
  source.text = "extern \"C\" __global__ void heddle_kernel(float *p, int n) { " + body + " }\n";
  return source;
}

const KernelSource kDouble = sourceOf("p[threadIdx.x] *= 2.f;");

// A folder of results of its own.
class KeptFolder {
public:
  KeptFolder() { setenv("HEDDLE_NVRTC_CACHE", scratch.path().c_str(), 1); }
  ~KeptFolder() { unsetenv("HEDDLE_NVRTC_CACHE"); }
  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const fs::directory_entry &entry : fs::directory_iterator(scratch.path()))
      paths.push_back(entry.path().string());
    return paths;
  }

private:
  test::ScratchFolder scratch;
};

int compilationsOf(const std::function<void()> &work) {
  const int before = counting_nvrtc_compilations();
  work();
  return counting_nvrtc_compilations() - before;
}

int compilationsOf(const KernelSource &source, std::string_view arch = "sm_80") {
  return compilationsOf([&] { (void)compile(*keptNvrtc(), source, arch); });
}

} // namespace

TEST_CASE("processes that compile the same at once leave one whole result of each") {
  if (!keptNvrtc())
    return;
  const KeptFolder folder;
  const test::SharedNumbers arrived(2);
  const auto compileAll = [&](int child) {
    arrived[child] = 1;
    while (!arrived[1 - child])
      sched_yield();
    for (const char *body : {"p[0] = 1.f;", "p[0] = 2.f;"})
      if (!compile(*keptNvrtc(), sourceOf(body), "sm_80").isOk())
        return 1;
    return 0;
  };
  const pid_t one = test::startChild([&] { return compileAll(0); });
  const pid_t other = test::startChild([&] { return compileAll(1); });
  CHECK(test::waitFor(one) == 0);
  CHECK(test::waitFor(other) == 0);
  CHECK(folder.files().size() == 2);
  CHECK(compilationsOf(sourceOf("p[0] = 1.f;")) == 0);
  CHECK(compilationsOf(sourceOf("p[0] = 2.f;")) == 0);
}

TEST_CASE("what was compiled before is answered with the same bytes, and took ptxas no time") {
  if (!keptNvrtc())
    return;
  const KeptFolder folder;
  const auto first = compile(*keptNvrtc(), kDouble, "sm_80");
  REQUIRE_MESSAGE(first.isOk(), first.status().message());
  CHECK(compilationsOf([&] {
          const auto second = compile(*keptNvrtc(), kDouble, "sm_80");
          REQUIRE(second.isOk());
          CHECK(second->cubin == first->cubin);
          CHECK(second->ptx == first->ptx);
          CHECK(second->log == first->log);
          CHECK(second->registers() == first->registers());
          CHECK(first->ptxasMs > 0);
          CHECK(second->ptxasMs == 0);
          CHECK(second->totalMs > 0);
        }) == 0);
}

TEST_CASE("a source that is refused is refused again with the same words") {
  if (!keptNvrtc())
    return;
  const KeptFolder folder;
  const KernelSource wrong = sourceOf("p[0] = undeclared;");
  const Status first = compile(*keptNvrtc(), wrong, "sm_80").status();
  CHECK(first.message().find("undeclared") != std::string::npos);
  CHECK(compilationsOf([&] {
          const Status second = compile(*keptNvrtc(), wrong, "sm_80").status();
          CHECK(second.code() == first.code());
          CHECK(second.message() == first.message());
        }) == 0);
}

TEST_CASE("whatever NVRTC is given is part of the name of the result") {
  if (!keptNvrtc())
    return;
  const KeptFolder folder;
  KernelSource source = kDouble;
  source.headers = {{"a.cuh", "#define A 1\n"}};
  CHECK(compilationsOf(source) == 1);
  CHECK(compilationsOf(source) == 0);
  CHECK(compilationsOf(source, "sm_90a") == 1);
  const std::function<void(KernelSource &)> changes[] = {
      [](KernelSource &s) { s.text += " "; },
      [](KernelSource &s) { s.name += "x"; },
      [](KernelSource &s) { s.headers[0].text += " "; },
      [](KernelSource &s) { s.headers[0].name = "b.cuh"; },
      [](KernelSource &s) { s.headers.push_back({"c.cuh", ""}); },
      [](KernelSource &s) { s.options.push_back("-lineinfo"); },
  };
  for (const auto &change : changes) {
    KernelSource other = source;
    change(other);
    CHECK(compilationsOf(other) == 1);
    CHECK(compilationsOf(other) == 0);
  }
}

TEST_CASE("a file that is not what was written is compiled anew and written again") {
  if (!keptNvrtc())
    return;
  const KeptFolder folder;
  REQUIRE(compilationsOf(sourceOf("p[0] = 3.f;")) == 1);
  const std::string strange = test::readFile(folder.files().at(0));
  fs::remove(folder.files().at(0));
  REQUIRE(compilationsOf(kDouble) == 1);
  const std::string file = folder.files().at(0);
  const std::string whole = test::readFile(file);
  std::string turned = whole;
  turned[turned.size() / 2] ^= 1;
  const std::string odd[] = {"", whole.substr(0, whole.size() / 2), whole + "x", turned, strange};
  for (const std::string &bytes : odd) {
    test::writeFile(file, bytes);
    CHECK(compilationsOf(kDouble) == 1);
    CHECK(test::readFile(file) == whole);
    CHECK(compilationsOf(kDouble) == 0);
  }
}

TEST_CASE("a call that reads or writes files of its own is never answered from the folder") {
  if (!keptNvrtc())
    return;
  const KeptFolder folder;
  for (const char *option : {"-I/nowhere", "--include-path=/nowhere", "--pch-messages=false"}) {
    CAPTURE(option);
    KernelSource source = kDouble;
    source.options = {option};
    CHECK(compilationsOf(source) == 1);
    CHECK(compilationsOf(source) == 1);
  }
  CHECK(folder.files().empty());
}

TEST_CASE("without a folder, or with one that cannot be written, everything is compiled") {
  if (!keptNvrtc())
    return;
  for (const char *folder : {"", "/proc/no-such"}) {
    setenv("HEDDLE_NVRTC_CACHE", folder, 1);
    CHECK(compilationsOf(kDouble) == 1);
    CHECK(compilationsOf(kDouble) == 1);
  }
  unsetenv("HEDDLE_NVRTC_CACHE");
  CHECK(compilationsOf(kDouble) == 1);
}
