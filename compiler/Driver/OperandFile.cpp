//===- OperandFile.cpp ----------------------------------------------------===//
#include "compiler/Driver/OperandFile.h"
#include "compiler/Io/Safetensors.h"

#include <atomic>
#include <filesystem>
#include <unistd.h>

namespace heddle {

static std::string scratchPath(const std::string &what) {
  static std::atomic<int> number{0};
  const std::string name = "heddle-" + std::to_string(getpid()) + "-" + std::to_string(number++) + "-" + what + ".safetensors";
  return (std::filesystem::temp_directory_path() / name).string();
}

ScratchFile::ScratchFile(const std::string &what) : path(scratchPath(what)) {}

ScratchFile::~ScratchFile() {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

Result<bool> writeOperands(const std::string &path, const Operands &operands) {
  std::map<std::string, OperandTensor> numbered;
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i])
      numbered.emplace(std::to_string(i), operands[i]);
  if (!numbered.empty())
    HEDDLE_TRY(writeSafetensors(path, {}, {}, numbered));
  return !numbered.empty();
}

Result<Operands> readOperands(const std::string &path, size_t count) {
  HEDDLE_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
  Operands operands(count);
  for (const auto &[name, entry] : file.entries()) {
    const size_t place = std::stoul(name);
    HEDDLE_ASSIGN(operands.at(place), file.readOperand(name));
  }
  return operands;
}

} // namespace heddle
