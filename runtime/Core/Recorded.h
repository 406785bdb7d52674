//===- Recorded.h - times that were played back -----------------*- C++ -*-===//
// Owns the mark of what a recording gave in the place of a measurement (`heddle tune --recorded`): its rows are of a GPU
// of another name, so that no launch, search or merge takes them for those of the GPU that was recorded.
#pragma once

#include <string_view>

namespace heddle {

inline constexpr std::string_view kRecordedMark = " (recorded)";

// The name of the GPU that was recorded; of others the name itself.
inline std::string_view withoutMark(std::string_view device) {
  const size_t mark = device.rfind(kRecordedMark);
  return mark != std::string_view::npos && mark + kRecordedMark.size() == device.size() ? device.substr(0, mark)
                                                                                        : device;
}

inline bool isRecorded(std::string_view device) { return withoutMark(device).size() != device.size(); }

} // namespace heddle
