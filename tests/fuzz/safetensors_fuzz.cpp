//===- safetensors_fuzz.cpp - hostile tensor files --------------------------===//
#include "compiler/Io/Safetensors.h"
#include "tests/fuzz/OwnFile.h"

using namespace heddle;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static test::OwnFile place("input.safetensors");
  Result<SafetensorsFile> file = SafetensorsFile::open(place.write(data, size));
  if (!file)
    return 0;
  for (const auto &[name, entry] : file->entries()) {
    FUZZ_REQUIRE(entry.begin <= entry.end && entry.end <= size, "a tensor outside the file");
    Result<HostTensor> tensor = file->read(name);
    FUZZ_REQUIRE(tensor.isOk() == entry.dtype.has_value(), "a checked tensor cannot be read");
    if (tensor)
      FUZZ_REQUIRE(tensor->data.size() == entry.end - entry.begin, "a tensor of another size");
  }
  return 0;
}
