//===- HostCompiler.cpp - texts compiled by the host compiler ---------------===//
#include "support/Places.h"
#include "support/HostCompiler.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::test {
namespace {

std::string makeFolder() {
  std::filesystem::create_directories(test::places().hostFolder);
  std::string path = test::places().hostFolder + "/XXXXXX";
  if (!mkdtemp(path.data()))
    throw std::runtime_error("cannot make a folder like " + path);
  return path;
}

std::string readAll(const std::string &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

HostText asLibrary(HostText source) {
  source.flags += " -fPIC -fvisibility=hidden"; // or g++ shares the static members of all loaded texts
  return source;
}

} // namespace

HostProgram::HostProgram(const HostText &source, const std::string &linkFlags) : folder(makeFolder()) {
  for (const auto &[name, text] : source.headers) {
    std::filesystem::create_directories(std::filesystem::path(folder + "/" + name).parent_path());
    std::ofstream(folder + "/" + name) << text;
  }
  std::ofstream(folder + "/text.cpp") << source.text;
  execute(test::places().hostCompile + " -std=c++17 -O1 -I. " + source.flags + " -I" + test::places().skeletons +
              " -MD -MF text.d -o text.o -c text.cpp",
          source.text);
  execute(test::places().hostLink + " " + linkFlags + " -o made text.o " + source.libraries, source.text);
}

HostProgram::~HostProgram() { std::filesystem::remove_all(folder); }

void HostProgram::execute(const std::string &command, const std::string &text) const {
  if (std::system(("cd " + folder + " && " + command + " 2> log").c_str()) != 0)
    throw std::runtime_error("the text does not compile:\n" + readAll(folder + "/log").substr(0, 4000) + "\n" + text);
}

int HostProgram::run() const {
  const int status = std::system(path().c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

HostLibrary::HostLibrary(HostText source) : HostProgram(asLibrary(std::move(source)), "-shared") {
  handle = dlopen(path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw std::runtime_error(dlerror());
}

HostLibrary::~HostLibrary() {
  if (handle)
    dlclose(handle);
}

void *HostLibrary::symbol(const char *name) const {
  if (void *found = dlsym(handle, name))
    return found;
  throw std::runtime_error(std::string("missing in the compiled text: ") + name);
}

} // namespace heddle::test
