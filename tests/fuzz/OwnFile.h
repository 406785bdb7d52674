//===- OwnFile.h - the input as a file ----------------------------*- C++ -*-===//
#ifndef HEDDLE_TESTS_FUZZ_OWNFILE_H
#define HEDDLE_TESTS_FUZZ_OWNFILE_H

#include "tests/fuzz/Fuzz.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace heddle::test {

/// One folder of this process, empty again after every input.
class OwnFile {
public:
  explicit OwnFile(const char *name) {
    const std::filesystem::path shared = "/dev/shm";
    std::error_code error;
    const auto base = std::filesystem::is_directory(shared, error) ? shared : std::filesystem::temp_directory_path();
    folder = base / ("heddle-fuzz-" + std::to_string(getpid()));
    file = folder / name;
  }
  std::string write(const uint8_t *data, size_t size) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char *>(data), std::streamsize(size));
    return file.string();
  }
  bool holds(const uint8_t *data, size_t size) const {
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    return bytes == std::string(reinterpret_cast<const char *>(data), size);
  }
  ~OwnFile() {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  }

private:
  std::filesystem::path folder, file;
};

} // namespace heddle::test

#endif
