//===- HostCompiler.h - texts compiled by the host compiler -----------------===//
// Owns what tests make of device texts without a GPU: a folder below that of the build for each, removed with it. They
// are compiled through the build's launcher (cmake/cached-compile.sh), so each text is compiled once on a machine.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_HOSTCOMPILER_H
#define HEDDLE_TESTS_UNIT_SUPPORT_HOSTCOMPILER_H

#include <map>
#include <string>

namespace heddle::test {

struct HostText {
  std::string text;
  std::string flags;                          ///< beside -std=c++17 -O1 and the folder of the skeletons
  std::map<std::string, std::string> headers; ///< by name; found before all others
  std::string libraries = "";                 ///< words of the link
};

class HostProgram {
public:
  /// Throws std::runtime_error with what the compiler says and the text.
  explicit HostProgram(const HostText &source) : HostProgram(source, "") {}
  ~HostProgram();
  HostProgram(const HostProgram &) = delete;
  HostProgram &operator=(const HostProgram &) = delete;

  /// Its exit code; -1 if it died.
  int run() const;

protected:
  HostProgram(const HostText &source, const std::string &linkFlags);
  std::string path() const { return folder + "/made"; }

private:
  void execute(const std::string &command, const std::string &text) const;
  std::string folder;
};

/// A library whose symbols are hidden but for those that the text exports, loaded.
class HostLibrary : public HostProgram {
public:
  explicit HostLibrary(HostText source);
  ~HostLibrary();

  /// Throws std::runtime_error if it has none of that name.
  template <class Function> void find(const char *name, Function &function) const {
    function = reinterpret_cast<Function>(symbol(name));
  }

private:
  void *symbol(const char *name) const;
  void *handle = nullptr;
};

} // namespace heddle::test

#endif
