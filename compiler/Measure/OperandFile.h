#pragma once

#include "compiler/Io/OperandTensor.h"
#include "runtime/Core/PartFolder.h"

#include <string>

namespace heddle {

/// A path of its own in the temporary folder; the file is removed with the object, if there is one. Where no file can
/// be made there, writing to the path says so.
class ScratchFile {
public:
  explicit ScratchFile(const std::string &name);
  ScratchFile(const ScratchFile &) = delete;
  ScratchFile &operator=(const ScratchFile &) = delete;

private:
  Result<PartFolder> folder;

public:
  const std::string path;
};

/// The tensors under their numbers. None: no file is written, and the result is false.
Result<bool> writeOperands(const std::string &path, const Operands &operands);
/// What writeOperands wrote of `count` places.
Result<Operands> readOperands(const std::string &path, size_t count);

} // namespace heddle
