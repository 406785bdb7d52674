// libheddle_kept_nvrtc: NVRTC for tests, which compiles nothing twice. A compilation whose text, headers, options and library
// were seen before is answered from a folder; all others go to the library behind it, and their outputs are kept.
#include "KeptResults.h"
#include "RealNvrtc.h"

#include <cstdlib>
#include <cstring>
#include <memory>

using namespace heddle;
using namespace heddle::kept;

namespace {

constexpr int kInternalError = 11; // NVRTC_ERROR_INTERNAL_ERROR

struct Program {
  NvrtcProgram real = nullptr;
  ProgramText text;
  std::optional<Compilation> kept; // what answers for this program instead of the library
};

// Other failures, such as too little memory, may be gone the next time.
bool followsFromText(int code) {
  return code == static_cast<int>(NvrtcCode::success) || code == static_cast<int>(NvrtcCode::compilation) ||
         code == static_cast<int>(NvrtcCode::invalidOption);
}

using Size = int (*)(NvrtcProgram, size_t *);
using Get = int (*)(NvrtcProgram, char *);

Output ask(NvrtcProgram program, Size size, Get get) {
  Output output;
  size_t bytes = 0;
  output.code = size(program, &bytes);
  if (output.code != 0)
    return output;
  output.bytes.resize(bytes);
  output.code = get(program, output.bytes.data());
  return output;
}

Compilation outputsOf(NvrtcProgram program, int code) {
  const NvrtcFunctions &f = realNvrtc()->functions();
  Compilation result;
  result.code = code;
  result.log = ask(program, f.getLogSize, f.getLog);
  result.log.bytes = withZeroTimes(result.log.bytes);
  result.ptx = ask(program, f.getPtxSize, f.getPtx);
  result.cubin = ask(program, f.getCubinSize, f.getCubin);
  return result;
}

int sizeOf(const Output &output, size_t *bytes) {
  if (output.code == 0)
    *bytes = output.bytes.size();
  return output.code;
}

int copyOf(const Output &output, char *bytes) {
  if (output.code == 0)
    std::memcpy(bytes, output.bytes.data(), output.bytes.size());
  return output.code;
}

} // namespace

extern "C" {

const char *nvrtcGetErrorString(int code) {
  return realNvrtc() ? realNvrtc()->functions().getErrorString(code) : "no NVRTC behind the kept results";
}

int nvrtcVersion(int *major, int *minor) {
  return realNvrtc() ? realNvrtc()->functions().version(major, minor) : kInternalError;
}

int nvrtcGetNumSupportedArchs(int *count) {
  return realNvrtc() ? realNvrtc()->functions().getNumSupportedArchs(count) : kInternalError;
}

int nvrtcGetSupportedArchs(int *archs) {
  return realNvrtc() ? realNvrtc()->functions().getSupportedArchs(archs) : kInternalError;
}

int nvrtcCreateProgram(Program **result, const char *text, const char *name, int count, const char *const *headers,
                       const char *const *names) {
  auto program = std::make_unique<Program>();
  const int code = realNvrtc()->functions().createProgram(&program->real, text, name, count, headers, names);
  if (code != 0)
    return code;
  program->text.text = text;
  program->text.name = name ? name : "";
  program->text.headerTexts.assign(headers, headers + count);
  program->text.headerNames.assign(names, names + count);
  *result = program.release();
  return 0;
}

int nvrtcDestroyProgram(Program **program) {
  const int code = realNvrtc()->functions().destroyProgram(&(*program)->real);
  delete *program;
  *program = nullptr;
  return code;
}

int nvrtcCompileProgram(Program *program, int count, const char *const *options) {
  const char *folder = std::getenv("HEDDLE_NVRTC_CACHE");
  const std::vector<std::string> words(options, options + count);
  program->kept.reset();
  if (!folder || !*folder || !dependsOnTextAlone(words))
    return realNvrtc()->functions().compileProgram(program->real, count, options);
  const ResultFolder results(folder);
  const std::string name = nameOf(*realNvrtc(), program->text, words);
  if ((program->kept = results.find(name)))
    return program->kept->code;
  const int code = realNvrtc()->functions().compileProgram(program->real, count, options);
  if (followsFromText(code))
    results.keep(name, outputsOf(program->real, code));
  return code;
}

#define HEDDLE_KEPT_OUTPUT(OUTPUT, NAME, MEMBER)                                                                       \
  int nvrtcGet##NAME##Size(Program *program, size_t *bytes) {                                                          \
    return program->kept ? sizeOf(program->kept->OUTPUT, bytes)                                                        \
                         : realNvrtc()->functions().get##MEMBER##Size(program->real, bytes);                           \
  }                                                                                                                    \
  int nvrtcGet##NAME(Program *program, char *bytes) {                                                                  \
    return program->kept ? copyOf(program->kept->OUTPUT, bytes)                                                        \
                         : realNvrtc()->functions().get##MEMBER(program->real, bytes);                                 \
  }
HEDDLE_KEPT_OUTPUT(log, ProgramLog, Log)
HEDDLE_KEPT_OUTPUT(ptx, PTX, Ptx)
HEDDLE_KEPT_OUTPUT(cubin, CUBIN, Cubin)
}
