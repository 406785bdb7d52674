// Owns the safetensors format: 8 bytes little-endian header size, a JSON header, the data. What is
// read is checked completely before any element is handed out; what is written appears under its
// name whole or not at all. Failures: notFound (no such file or tensor), io (the system refused),
// corrupt (the file breaks the format or is cut short), unsupported (an element type that no
// kernel takes), invalidArgument (the caller's names, shapes or path).
#pragma once

#include "compiler/Io/AtomicFile.h"
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
  // A copy of one tensor; notFound lists the names that the file has. Of the elements of calls, or those of a set.
  Result<HostTensor> read(const std::string &name, ElementSet set = &ElementTraits::isOfCalls) const;
  // The same of a tensor that a pattern reads: unsupported names the element types that one may have.
  Result<OperandTensor> readOperand(const std::string &name) const;
  // Shape and element type of a tensor of a call, without its elements. Failures as of read().
  Result<HostTensor> describe(const std::string &name) const;
  // Bytes [first, first + bytes) of the tensor, which has them.
  Status readBytes(const TensorEntry &entry, uint64_t first, uint64_t bytes, void *to) const;

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

// A file of one tensor after the other whose elements come in any order, in pieces; what never comes is 0. Move-only.
class SafetensorsPieces {
public:
  // Each with its shape and element type alone. The failures of writeSafetensors, and io where the disk has no room.
  static Result<SafetensorsPieces> create(const std::string &path, const std::map<std::string, HostTensor> &tensors,
                                          const std::map<std::string, std::string> &metadata = {});
  // Elements of the tensor, from number `first` on in row-major order.
  Status write(const std::string &name, uint64_t first, const void *data, uint64_t elements);
  // Once, at the end: the file takes its name.
  Status publish() { return file.publish(); }

private:
  struct Place {
    uint64_t offset, elementBytes;
  };
  explicit SafetensorsPieces(AtomicFile file) : file(std::move(file)) {}
  AtomicFile file;
  std::map<std::string, Place> places;
};

} // namespace heddle
