//===- Safetensors.h - tensor files -------------------------------------------===//
// Owns the safetensors format: 8 bytes little-endian header size, a JSON header, the data. What is
// read is checked completely before any element is handed out; what is written appears under its
// name whole or not at all. Failures: notFound (no such file or tensor), io (the system refused),
// corrupt (the file breaks the format or is cut short), unsupported (an element type that no
// kernel takes), invalidArgument (the caller's names, shapes or path).
#pragma once

#include "compiler/Io/HostTensor.h"
#include "compiler/Io/OperandTensor.h"
#include "runtime/Core/Status.h"
#include <map>
#include <memory>
#include <optional>

namespace heddle {

// What the header says about one tensor. Offsets count bytes from the start of the data section.
struct TensorEntry {
  std::string fileDType;      // as spelled in the file: "BF16", "F16", "F32", "I64", ...
  std::optional<DType> dtype; // nothing for a type that the table of elements lacks
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
};

// An open file. Move-only; reading is const and thread-safe.
class SafetensorsFile {
public:
  // Checks the whole header against the file's size: known keys and types, sizes that agree with
  // shapes, no overlap, no gap, no tensor twice, nothing behind the end.
  static Result<SafetensorsFile> open(const std::string &path);

  const std::string &path() const { return filePath; }
  const std::map<std::string, TensorEntry> &entries() const { return tensors; }
  const std::map<std::string, std::string> &metadata() const { return notes; }
  // A copy of one tensor; notFound lists the names that the file has.
  Result<HostTensor> read(const std::string &name) const;
  // The same of a tensor that a pattern reads: unsupported names the element types that one may have.
  Result<OperandTensor> readOperand(const std::string &name) const;

private:
  Result<const TensorEntry *> find(const std::string &name) const;
  Status checkElement(const std::string &name, const TensorEntry &entry, ElementSet set) const;
  Status checkRoom(const std::string &name, const TensorEntry &entry) const;
  Status readData(const TensorEntry &entry, std::byte *to) const;
  std::string filePath;
  std::shared_ptr<const int> descriptor; // closes the file with the last reader
  uint64_t dataStart = 0;
  std::map<std::string, TensorEntry> tensors;
  std::map<std::string, std::string> notes;
};

// Writes through a temporary file beside `path` and a rename. The header lists wider elements
// first, then by name, so equal tensors give equal bytes. An existing regular file is replaced;
// anything else (a folder, a device) is refused.
Status writeSafetensors(const std::string &path, const std::map<std::string, const HostTensor *> &tensors,
                        const std::map<std::string, std::string> &metadata = {},
                        const std::map<std::string, OperandTensor> &operands = {});

} // namespace heddle
