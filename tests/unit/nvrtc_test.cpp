// NVRTC: the search, our declarations, compilation for every architecture, resources, errors, keys.
// Needs no GPU. Without NVRTC the cases that compile are skipped and say so.
#include "codegen/Nvrtc/Compiler.h"
#include "codegen/Target/FindArch.h"

#include <atomic>
#include <cstdlib>
#include "tests/unit/scratch_fixture.h"

#include <doctest/doctest.h>
#include <filesystem>
#include <functional>
#include <thread>

#if __has_include(<nvrtc.h>)
#include <nvrtc.h>
#define HEDDLE_HAS_NVRTC_H 1
#endif

using namespace heddle;

namespace {

bool hasNvrtc() {
  const auto &library = NvrtcLibrary::shared();
  if (!library.isOk())
    MESSAGE("skipped: " << library.status().message());
  return library.isOk();
}

KernelSource sourceOf(const std::string &body, const std::string &head = "") {
  KernelSource source;
  source.text = head + "extern \"C\" __global__ void heddle_kernel(float *p, int n) {\n" + body + "\n}\n";
  return source;
}

const char *const kTrivial = "p[threadIdx.x] = p[threadIdx.x] * 2.f + n;";

} // namespace

TEST_CASE("an explicit library that cannot be opened is an error, not a reason to look elsewhere") {
  NvrtcSearch search = NvrtcSearch::fromEnvironment();
  search.library = "/nowhere/libnvrtc.so.13";
  const Status status = NvrtcLibrary::open(search).status();
  CHECK(status.code() == StatusCode::unavailable);
  CHECK(status.message().find("/nowhere/libnvrtc.so.13") != std::string::npos);
  CHECK(status.message().find("to get it: install") != std::string::npos);
}

TEST_CASE("a library without NVRTC's functions is refused by the function that is missing") {
  NvrtcSearch search;
  search.library = "libm.so.6";
  CHECK(NvrtcLibrary::open(search).status().message().find("libm.so.6: no function nvrtcGetErrorString") !=
        std::string::npos);
}

TEST_CASE("where nothing is found, the message lists every place and how to get NVRTC") {
  NvrtcSearch search;
  search.folders = {"/nowhere/one", "/nowhere/two"};
  search.askLoader = false;
  const Status status = NvrtcLibrary::open(search).status();
  CHECK(status.code() == StatusCode::unavailable);
  CHECK(status.message().find("tried /nowhere/one, /nowhere/two; to get it") != std::string::npos);
  search.library = "/proc";
  CHECK(NvrtcLibrary::open(search).status().message().find("no libnvrtc in /proc") != std::string::npos);
}

TEST_CASE("a newer version in a later folder wins over an older one in an earlier folder") {
  if (!hasNvrtc())
    return;
  namespace fs = std::filesystem;
  const test::ScratchFolder scratch;
  const fs::path root = scratch.path();
  fs::create_directories(root / "old");
  fs::create_directories(root / "new");
  const fs::path real = fs::canonical((*NvrtcLibrary::shared())->loadedFile());
  fs::create_symlink(real, root / "old" / "libnvrtc.so.12");
  fs::create_symlink(real, root / "new" / "libnvrtc.so.13");
  NvrtcSearch search;
  search.folders = {(root / "old").string(), (root / "new").string()};
  search.askLoader = false;
  const auto library = NvrtcLibrary::open(search);
  REQUIRE_MESSAGE(library.isOk(), library.status().message());
  CHECK((*library)->path() == (root / "new" / "libnvrtc.so.13").string());
  search.library = (root / "old").string();
  CHECK((*NvrtcLibrary::open(search))->path() == (root / "old" / "libnvrtc.so.12").string());
}

TEST_CASE("an NVRTC that was installed along with a library is found from there") {
  if (!hasNvrtc())
    return;
  namespace fs = std::filesystem;
  const test::ScratchFolder scratch;
  const fs::path root = scratch.path();
  const fs::path real = fs::canonical((*NvrtcLibrary::shared())->loadedFile());
  for (const char *place : {"lib/heddle/nvrtc", "lib/nvrtc/nvidia/cu13/lib", "nvrtc", "nvidia/cu13/lib"}) {
    const fs::path folder = root / "prefix" / place;
    fs::create_directories(folder);
    fs::create_symlink(real, folder / "libnvrtc.so.13");
    const fs::path binary = std::string(place) == "nvidia/cu13/lib" ? root / "prefix/heddle/lib/libheddle.so.0"
                                                                    : root / "prefix/lib/libheddle.so.0";
    NvrtcSearch search;
    search.askLoader = false;
    search.addFoldersNear(binary.string());
    const auto library = NvrtcLibrary::open(search);
    REQUIRE_MESSAGE(library.isOk(), place << ": " << library.status().message());
    CHECK((*library)->path() == (folder / "libnvrtc.so.13").string());
    fs::remove_all(root / "prefix");
  }
}

#ifdef HEDDLE_HAS_NVRTC_H
namespace {
template <class T> struct Ours {
  using type = T;
};
template <> struct Ours<nvrtcProgram> {
  using type = NvrtcProgram;
};
template <> struct Ours<nvrtcProgram *> {
  using type = NvrtcProgram *;
};
template <> struct Ours<nvrtcResult> {
  using type = int;
};

template <class R, class... A>
constexpr auto ours(R (*)(A...)) -> typename Ours<R>::type (*)(typename Ours<A>::type...) {
  return nullptr;
}
#define CHECK_SIGNATURE(theirs, member)                                                                                \
  static_assert(std::is_same_v<decltype(ours(theirs)), decltype(NvrtcFunctions::member)>)
CHECK_SIGNATURE(nvrtcGetErrorString, getErrorString);
CHECK_SIGNATURE(nvrtcVersion, version);
CHECK_SIGNATURE(nvrtcGetNumSupportedArchs, getNumSupportedArchs);
CHECK_SIGNATURE(nvrtcGetSupportedArchs, getSupportedArchs);
CHECK_SIGNATURE(nvrtcCreateProgram, createProgram);
CHECK_SIGNATURE(nvrtcDestroyProgram, destroyProgram);
CHECK_SIGNATURE(nvrtcCompileProgram, compileProgram);
CHECK_SIGNATURE(nvrtcGetPTXSize, getPtxSize);
CHECK_SIGNATURE(nvrtcGetPTX, getPtx);
CHECK_SIGNATURE(nvrtcGetCUBINSize, getCubinSize);
CHECK_SIGNATURE(nvrtcGetCUBIN, getCubin);
CHECK_SIGNATURE(nvrtcGetProgramLogSize, getLogSize);
CHECK_SIGNATURE(nvrtcGetProgramLog, getLog);
static_assert(static_cast<int>(NvrtcCode::success) == NVRTC_SUCCESS);
static_assert(static_cast<int>(NvrtcCode::invalidOption) == NVRTC_ERROR_INVALID_OPTION);
static_assert(static_cast<int>(NvrtcCode::compilation) == NVRTC_ERROR_COMPILATION);
} // namespace
#endif

TEST_CASE("the ptxas log of one entry is read, with spills of what it calls") {
  const char *log = "ptxas info    : 0 bytes gmem\n"
                    "ptxas info    : Compiling entry function 'other' for 'x'\n"
                    "ptxas         .     8 bytes stack frame, 9 bytes spill stores, 10 bytes spill loads\n"
                    "ptxas info    : Used 99 registers, used 9 barriers, 999 bytes smem\n"
                    "ptxas info    : Compiling entry function 'heddle_kernel' for 'x'\n"
                    "ptxas         .     16 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads\n"
                    "ptxas         .     0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
                    "ptxas info    : Used 128 registers, used 1 barriers, 256 bytes smem, 364 bytes cmem[0]\n"
                    "ptxas info    : Compiling entry function 'plain' for 'x'\n"
                    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                    "ptxas info    : Used 16 registers\n"
                    "ptxas info    : Compile time = 141.5 ms\n";
  const auto usage = parsePtxasLog(log, kKernelEntry);
  REQUIRE(usage.isOk());
  CHECK(usage->registers == 128);
  CHECK(usage->stackFrameBytes == 16);
  CHECK(usage->spillStoreBytes == 28);
  CHECK(usage->spillLoadBytes == 40);
  CHECK(usage->staticSharedBytes == 256);
  CHECK(usage->barriers == 1);
  CHECK(ptxasMilliseconds(log) == doctest::Approx(141.5));
  CHECK(withoutTimes(log).find("Compile time") == std::string::npos);
  CHECK(withoutTimes(log).find("Used 128 registers") != std::string::npos);
  CHECK(parsePtxasLog(log, "absent").status().code() == StatusCode::notFound);
  const std::vector<EntrySpills> spills = parseSpills(log);
  REQUIRE(spills.size() == 2);
  CHECK(spills[0].entry == "other");
  CHECK(spills[1].entry == kKernelEntry);
  CHECK(spills[1].bytes == 28 + 40);
}

TEST_CASE("a damaged cubin is refused, at any length") {
  CHECK(readCubinUsage("", kKernelEntry).status().code() == StatusCode::corrupt);
  CHECK(readCubinUsage(std::string(200, 'x'), kKernelEntry).status().code() == StatusCode::corrupt);
  if (!hasNvrtc())
    return;
  const auto cubin = compile(sourceOf(kTrivial), "sm_80");
  REQUIRE(cubin.isOk());
  size_t refused = 0;
  for (size_t length = 0; length < cubin->cubin.size(); length += 7)
    refused += !readCubinUsage(cubin->cubin.substr(0, length), kKernelEntry).isOk();
  CHECK(refused > 0);
  CHECK(readCubinUsage(cubin->cubin, "absent").status().code() == StatusCode::notFound);
}

TEST_CASE("a trivial kernel compiles for every architecture") {
  if (!hasNvrtc())
    return;
  for (const std::string &arch : gpuArchNames()) {
    CAPTURE(arch);
    const auto result = compile(sourceOf(kTrivial), arch);
    REQUIRE_MESSAGE(result.isOk(), result.status().message());
    CHECK(result->arch == arch);
    CHECK(result->cubin.compare(0, 4,
                                "\x7f"
                                "ELF") == 0);
    CHECK(result->ptx.find(".visible .entry heddle_kernel") != std::string::npos);
    CHECK(result->ptx.find(".target " + arch) != std::string::npos);
    CHECK(result->registers() >= 4);
    CHECK(result->registers() <= 40);
    CHECK(result->spillBytes() == 0);
    CHECK(result->totalMs > 0);
    CHECK(result->ptxasMs <= result->totalMs);
    CHECK(result->minDriver == 1000 * (*NvrtcLibrary::shared())->majorVersion());
    CHECK(result->nvrtcVersion == (*NvrtcLibrary::shared())->versionText());
    CHECK(checkVariant(*result).isOk());
  }
}

TEST_CASE("the log and the cubin agree on registers and stack frame") {
  if (!hasNvrtc())
    return;
  const KernelSource source =
      sourceOf("__shared__ float tile[64]; float local[40];\n"
               "for (int i = 0; i < 40; ++i) local[i] = p[i];\n"
               "for (int i = 0; i < n; ++i) local[i * 7 % 40] += p[i] * local[i * 3 % 40];\n"
               "tile[threadIdx.x % 64] = local[n % 40]; __syncthreads();\n"
               "p[threadIdx.x] = tile[(threadIdx.x + n) % 64] + local[(n + threadIdx.x) % 40];");
  for (const std::string &arch : gpuArchNames()) {
    CAPTURE(arch);
    const auto result = compile(source, arch);
    REQUIRE_MESSAGE(result.isOk(), result.status().message());
    const auto stated = readCubinUsage(result->cubin, kKernelEntry);
    REQUIRE(stated.isOk());
    CHECK(stated->registers == result->registers());
    CHECK(stated->stackFrameBytes == result->usage.stackFrameBytes);
    CHECK(result->usage.stackFrameBytes == 160);
    CHECK(result->usage.staticSharedBytes == 256);
    CHECK(result->usage.barriers == 1);
  }
}

TEST_CASE("a variant that spills is refused with the numbers") {
  if (!hasNvrtc())
    return;
  KernelSource source;
  source.text = "extern \"C\" __global__ void __launch_bounds__(1024, 2) heddle_kernel(float *p, int n) {\n"
                "  float a[96];\n"
                "  for (int i = 0; i < 96; ++i) a[i] = p[i * n];\n"
                "  for (int j = 0; j < n; ++j)\n"
                "    for (int i = 0; i < 96; ++i) a[i] = a[i] * a[(i + 1) % 96] + p[j];\n"
                "  for (int i = 0; i < 96; ++i) p[i] = a[i];\n}\n";
  const auto result = compile(source, "sm_80");
  REQUIRE_MESSAGE(result.isOk(), result.status().message());
  CHECK(result->spillBytes() > 0);
  const Status status = checkVariant(*result);
  CHECK(status.code() == StatusCode::unsupported);
  CHECK(status.message().find("spills: ptxas stores " + std::to_string(result->usage.spillStoreBytes)) == 0);
}

TEST_CASE("a variant is refused if any of its kernels spills") {
  Cubin cubin;
  cubin.arch = "sm_90a";
  const std::string quiet = "ptxas info    : Compiling entry function 'heddle_kernel' for 'sm_90a'\n"
                            "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
  cubin.log = quiet;
  CHECK(checkVariant(cubin).isOk());
  cubin.log += "ptxas info    : Compiling entry function 'heddle_query_walk' for 'sm_90a'\n"
               "    8 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n";
  CHECK(checkVariant(cubin).message() == "spills: ptxas stores and loads 20 B in heddle_query_walk for sm_90a");
}

TEST_CASE("a performance note of ptxas fails the variant") {
  Cubin cubin;
  cubin.log =
      "ptxas info    : quiet\nptxas info    : (C7519) Potential Performance Loss: wgmma waits\nptxas info : x\n";
  CHECK(checkVariant(cubin).message() == "ptxas note C7519: Potential Performance Loss: wgmma waits");
  cubin.log = "ptxas info    : quiet\n";
  CHECK(checkVariant(cubin).isOk());
}

TEST_CASE("remarks on warpgroup products are read, each once") {
  const std::string loss =
      "Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient "
      "register resources for the wgmma pipeline in the function 'heddle_kernel'";
  const std::string arrive = "warpgroup.arrive is injected in around line 42 by compiler to allow use of registers in "
                             "GMMA in function 'heddle_kernel'";
  const std::vector<CompilerNote> notes = parseNotes(
      "ptxas info    : (C7519) " + arrive + "\nptxas info    : 0 bytes gmem (C75)\nptxas info    : (C7512) " + loss +
      "\nptxas info    : (C7512) " + loss + "\nptxas warning : (C7999) something else\n");
  REQUIRE(notes.size() == 2);
  CHECK(notes[0].code == "C7519");
  CHECK(notes[0].text == arrive);
  CHECK_FALSE(notes[0].isLoss);
  CHECK(notes[1].code == "C7512");
  CHECK(notes[1].text == loss);
  CHECK(notes[1].isLoss);
  CHECK(parseNotes("").empty());
  CHECK(countWarpgroupProducts("wgmma.mma_async.sync {..};\n wgmma.fence; wgmma.mma_async.sync;") == 2);
}

TEST_CASE("products that the compiler takes one by one are counted and refused") {
  if (!hasNvrtc())
    return;
  const char *product =
      "asm volatile(\"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, "
      "0, 0;\" : \"+f\"(a), \"+f\"(b), \"+f\"(c), \"+f\"(d) : \"l\"(x), \"l\"(x));\n";
  KernelSource source;
  source.text =
      std::string("extern \"C\" __global__ void __launch_bounds__(128) heddle_kernel(float *p, long long x) {\n"
                  "float a = p[0], b = p[1], c = p[2], d = p[3];\n"
                  "asm volatile(\"wgmma.fence.sync.aligned;\");\n") +
      product + "a *= 2;\n" + product +
      "asm volatile(\"wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\");\n"
      "p[0] = a; p[1] = b; p[2] = c; p[3] = d;\n}\n";
  const auto result = compile(source, "sm_90a");
  REQUIRE_MESSAGE(result.isOk(), result.status().message());
  CHECK(result->warpgroupProducts() == 2);
  CHECK(result->log.find("2 warpgroup products in the PTX") != std::string::npos);
  CHECK_FALSE(parseNotes(result->log).empty());
  const Status verdict = checkVariant(*result);
  CHECK(verdict.code() == StatusCode::unsupported);
  CHECK_MESSAGE(verdict.message().find("ptxas note C75") == 0, verdict.message());
}

TEST_CASE("an error in the source gives its place and the whole log") {
  if (!hasNvrtc())
    return;
  const Status status = compile(sourceOf("p[0] = undeclared;\n  also_missing();"), "sm_80").status();
  CHECK(status.code() == StatusCode::invalidArgument);
  CHECK(status.message().find("heddle_kernel.cu(2): error: identifier \"undeclared\" is undefined\n") !=
        std::string::npos);
  CHECK(status.message().find("also_missing") != std::string::npos);
  const Status missing = compile(sourceOf("", "#include \"absent.cuh\"\n"), "sm_80").status();
  CHECK(missing.code() == StatusCode::invalidArgument);
  CHECK(missing.message().find("absent.cuh") != std::string::npos);
}

TEST_CASE("an error of ptxas is reported like one of the compiler") {
  if (!hasNvrtc())
    return;
  const Status status = compile(sourceOf("asm volatile(\"no.such.instruction;\");"), "sm_80").status();
  CHECK(status.code() == StatusCode::invalidArgument);
  CHECK(status.message().find("Not a name of any known instruction: 'no'") != std::string::npos);
}

TEST_CASE("an architecture or option that NVRTC does not know is unsupported") {
  if (!hasNvrtc())
    return;
  for (const char *arch : {"sm_35", "sm_9999", "hopper", ""}) {
    const Status status = compile(sourceOf(kTrivial), arch).status();
    CHECK(status.code() == StatusCode::unsupported);
    CHECK(status.message().find("does not compile for '" + std::string(arch) + "'; it knows compute capabilities") !=
          std::string::npos);
    CHECK(status.message().find("8.0") != std::string::npos);
  }
  KernelSource source = sourceOf(kTrivial);
  source.options = {"--no-such-option"};
  const Status status = compile(source, "sm_80").status();
  CHECK(status.code() == StatusCode::unsupported);
  CHECK(status.message().find("--no-such-option") != std::string::npos);
}

TEST_CASE("headers are taken from memory") {
  if (!hasNvrtc())
    return;
  KernelSource source = sourceOf("p[0] = kAnswer;", "#include \"folder/answer.cuh\"\n");
  source.headers = {{"folder/answer.cuh", "#include \"folder/other.cuh\"\n"},
                    {"folder/other.cuh", "constexpr float kAnswer = 42.f;\n"}};
  CHECK(compile(source, "sm_80").isOk());
}

TEST_CASE("the content key names everything that decides the binary, and nothing else") {
  KernelSource source = sourceOf(kTrivial);
  source.headers = {{"a.cuh", "int a;"}};
  const std::string key = contentKey(source, "sm_80", "13.0");
  CHECK(key.size() == 64);
  CHECK(contentKey(source, "sm_80", "13.0") == key);
  CHECK(contentKey(source, "sm_86", "13.0") != key);
  CHECK(contentKey(source, "sm_80", "13.1") != key);
  const std::function<void(KernelSource &)> changes[] = {
      [](KernelSource &s) { s.text += " "; },
      [](KernelSource &s) { s.headers[0].text += " "; },
      [](KernelSource &s) { s.headers[0].name = "b.cuh"; },
      [](KernelSource &s) { s.headers.push_back({"c.cuh", ""}); },
      [](KernelSource &s) { s.options.push_back("-lineinfo"); },
  };
  for (const auto &change : changes) {
    KernelSource other = source;
    change(other);
    CHECK(contentKey(other, "sm_80", "13.0") != key);
  }
}

TEST_CASE("the same source compiles to the same bytes, also from many threads at once") {
  if (!hasNvrtc())
    return;
  constexpr int kThreads = 4, kRounds = 3;
  std::vector<Cubin> serial;
  for (int i = 0; i < kThreads; ++i) {
    auto result = compile(sourceOf("p[threadIdx.x] += " + std::to_string(i) + ".f;"), "sm_90a");
    REQUIRE(result.isOk());
    serial.push_back(result.take());
  }
  std::atomic<int> equal{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        const auto result = compile(sourceOf("p[threadIdx.x] += " + std::to_string(i) + ".f;"), "sm_90a");
        if (result.isOk() && result->cubin == serial[i].cubin && result->contentKey == serial[i].contentKey &&
            result->log == serial[i].log)
          ++equal;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(equal == kThreads * kRounds);
}
