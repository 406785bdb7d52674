#include "runtime/Core/VersionedStruct.h"

namespace heddle {

Status badStructSize(const char *what, uint32_t bytes, size_t least) {
  return Status::invalidArgument(std::string(what) + ": struct_size: expected at least " + std::to_string(least) +
                                 ", at most " + std::to_string(kMaxStructBytes) + " and a multiple of 8, got " +
                                 std::to_string(bytes) + "; set it to the sizeof of the struct");
}

Status unknownField(const char *what, size_t place) {
  return Status::unsupported(std::string(what) + ": byte " + std::to_string(place) +
                             " belongs to a field of a newer version and is not zero; "
                             "update the runtime or leave the field zero");
}

} // namespace heddle
