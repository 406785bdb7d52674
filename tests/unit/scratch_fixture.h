// Files of one test: a folder that is private, local and removed at the end, and what files hold.
#ifndef HEDDLE_TESTS_UNIT_SCRATCH_FIXTURE_H
#define HEDDLE_TESTS_UNIT_SCRATCH_FIXTURE_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace heddle::test {

class ScratchFolder {
public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "heddle_test_XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  std::string operator/(const std::string &name) const { return folder + "/" + name; }
  const std::string &path() const { return folder; }

private:
  std::string folder;
};

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

inline void writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

} // namespace heddle::test

#endif
