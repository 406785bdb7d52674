#include "codegen/Nvrtc/Compiler.h"

#include "runtime/Core/Digest.h"

#include <algorithm>
#include <chrono>

namespace heddle {
namespace {

// Owns one program of one compilation.
class Program {
public:
  explicit Program(const NvrtcFunctions &functions) : f(functions) {}
  ~Program() {
    if (program)
      f.destroyProgram(&program);
  }
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  Status create(const KernelSource &source) {
    std::vector<const char *> names, texts;
    for (const SourceHeader &header : source.headers) {
      names.push_back(header.name.c_str());
      texts.push_back(header.text.c_str());
    }
    const int code = f.createProgram(&program, source.text.c_str(), source.name.c_str(), static_cast<int>(names.size()),
                                     texts.data(), names.data());
    if (code != 0)
      return Status::internal(std::string("nvrtcCreateProgram: ") + f.getErrorString(code));
    return {};
  }

  int run(const std::vector<std::string> &options) {
    std::vector<const char *> texts;
    for (const std::string &option : options)
      texts.push_back(option.c_str());
    return f.compileProgram(program, static_cast<int>(texts.size()), texts.data());
  }

  // The log ends with a zero byte that NVRTC counts; binaries do not.
  std::string log() { return terminated(f.getLogSize, f.getLog); }
  std::string ptx() { return terminated(f.getPtxSize, f.getPtx); }
  std::string cubin() { return bytes(f.getCubinSize, f.getCubin); }

private:
  using Size = int (*)(NvrtcProgram, size_t *);
  using Get = int (*)(NvrtcProgram, char *);

  std::string bytes(Size size, Get get) {
    size_t count = 0;
    if (size(program, &count) != 0)
      return {};
    std::string result(count, '\0');
    if (count > 0 && get(program, result.data()) != 0)
      return {};
    return result;
  }

  std::string terminated(Size size, Get get) {
    std::string text = bytes(size, get);
    text.resize(std::min(text.find('\0'), text.size()));
    return text;
  }

  const NvrtcFunctions &f;
  NvrtcProgram program = nullptr;
};

// 10 * major + minor, the number in the name; -1 without digits.
int capabilityOf(std::string_view arch) {
  const size_t begin = arch.find_first_of("0123456789");
  if (begin == std::string_view::npos)
    return -1;
  int value = 0;
  for (char c : arch.substr(begin, arch.find_last_of("0123456789") + 1 - begin))
    value = value * 10 + (c - '0');
  return value;
}

Status checkArch(const NvrtcLibrary &nvrtc, std::string_view arch) {
  const std::vector<int> &known = nvrtc.supportedCapabilities();
  if (std::find(known.begin(), known.end(), capabilityOf(arch)) != known.end())
    return {};
  std::string list;
  for (int capability : known)
    list += (list.empty() ? "" : ", ") + std::to_string(capability / 10) + "." + std::to_string(capability % 10);
  return Status::unsupported("NVRTC " + nvrtc.versionText() + " does not compile for '" + std::string(arch) +
                             "'; it knows compute capabilities " + list);
}

std::string firstError(const std::string &log) {
  size_t begin = 0;
  while (begin < log.size()) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    const std::string line = log.substr(begin, end - begin);
    if (line.find("error") != std::string::npos || line.find("fatal") != std::string::npos)
      return line;
    begin = end + 1;
  }
  return "no message";
}

Status failure(const NvrtcLibrary &nvrtc, int code, std::string_view arch, const std::string &log) {
  const std::string what = "NVRTC " + nvrtc.versionText() + " for " + std::string(arch) + ": ";
  if (code == static_cast<int>(NvrtcCode::compilation))
    return Status::invalidArgument(what + firstError(log) + "\n" + log);
  if (code == static_cast<int>(NvrtcCode::invalidOption))
    return Status::unsupported(what + firstError(log));
  return Status::internal(what + nvrtc.functions().getErrorString(code) + (log.empty() ? "" : "\n" + log));
}

// The log's numbers, after the cubin's own attributes agreed with them.
Result<ResourceUsage> usageOf(const std::string &log, const std::string &cubin) {
  HEDDLE_ASSIGN(ResourceUsage usage, parsePtxasLog(log, kKernelEntry));
  HEDDLE_ASSIGN(const ResourceUsage stated, readCubinUsage(cubin, kKernelEntry));
  if (usage.registers != stated.registers)
    return Status::internal("ptxas reports " + std::to_string(usage.registers) + " registers, the cubin states " +
                            std::to_string(stated.registers));
  return usage;
}

} // namespace

// NVRTC 13 keeps a cache of its own beside the driver's; what comes from there has no ptxas report.
std::vector<std::string> fixedOptions(std::string_view arch) {
  return {"--no-cache",         "--gpu-architecture=" + std::string(arch),
          "--std=c++17",        "--device-as-default-execution-space",
          "--ptxas-options=-v", "--diag-suppress=177"};
}

std::string contentKey(const KernelSource &source, std::string_view arch, std::string_view nvrtcVersion) {
  Sha256 digest;
  // Every part is preceded by its length, so that no two lists of parts read alike.
  auto add = [&](std::string_view part) { digest.update(std::to_string(part.size()) + ":").update(part); };
  add(source.name);
  add(source.text);
  add(std::to_string(source.headers.size()));
  for (const SourceHeader &header : source.headers) {
    add(header.name);
    add(header.text);
  }
  for (const std::string &option : fixedOptions(arch))
    add(option);
  for (const std::string &option : source.options)
    add(option);
  add(nvrtcVersion);
  add(arch);
  return digest.hex();
}

Result<std::string> contentKey(const KernelSource &source, std::string_view arch) {
  const auto &nvrtc = NvrtcLibrary::shared();
  return nvrtc ? Result<std::string>(contentKey(source, arch, (*nvrtc)->versionText())) : nvrtc.status();
}

Result<Cubin> compile(const NvrtcLibrary &nvrtc, const KernelSource &source, std::string_view arch) {
  HEDDLE_TRY(checkArch(nvrtc, arch));
  const auto start = std::chrono::steady_clock::now();
  Program program(nvrtc.functions());
  HEDDLE_TRY(program.create(source));
  std::vector<std::string> options = fixedOptions(arch);
  options.insert(options.end(), source.options.begin(), source.options.end());
  const int code = program.run(options);
  const std::string log = program.log();
  if (code != static_cast<int>(NvrtcCode::success))
    return failure(nvrtc, code, arch, withoutTimes(log));

  Cubin result;
  result.arch = arch;
  result.contentKey = contentKey(source, arch, nvrtc.versionText());
  result.nvrtcVersion = nvrtc.versionText();
  result.minDriver = 1000 * nvrtc.majorVersion();
  result.ptx = program.ptx();
  result.cubin = program.cubin();
  result.log = withoutTimes(log);
  if (const int64_t products = result.warpgroupProducts())
    result.log += "heddle info   : " + std::to_string(products) + " warpgroup products in the PTX\n";
  HEDDLE_ASSIGN(result.usage, usageOf(log, result.cubin));
  result.ptxasMs = ptxasMilliseconds(log);
  result.totalMs = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

Result<Cubin> compile(const KernelSource &source, std::string_view arch) {
  const auto &nvrtc = NvrtcLibrary::shared();
  if (!nvrtc)
    return nvrtc.status();
  return compile(**nvrtc, source, arch);
}

Status checkVariant(const Cubin &cubin) {
  if (cubin.spillBytes() > 0)
    return Status::unsupported("spills: ptxas stores " + std::to_string(cubin.usage.spillStoreBytes) + " B and loads " +
                               std::to_string(cubin.usage.spillLoadBytes) + " B at " +
                               std::to_string(cubin.registers()) + " registers for " + cubin.arch);
  for (const EntrySpills &spills : parseSpills(cubin.log))
    return Status::unsupported("spills: ptxas stores and loads " + std::to_string(spills.bytes) + " B in " +
                               spills.entry + " for " + cubin.arch);
  for (const CompilerNote &note : parseNotes(cubin.log))
    if (note.isLoss)
      return Status::unsupported("ptxas note " + note.code + ": " + note.text);
  return {};
}

} // namespace heddle
