#include "compiler/Measure/OperandFile.h"
#include "compiler/Io/Safetensors.h"

#include <filesystem>

namespace heddle {

ScratchFile::ScratchFile(const std::string &name)
    : folder(PartFolder::beside((std::filesystem::temp_directory_path() / name).string())),
      path(folder ? folder->file(name + ".safetensors") : "/dev/null/" + name) {}

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
