//===- Recorded.cpp - times that were played back -------------------------===//
#include "runtime/Core/Recorded.h"

#include <algorithm>

namespace heddle {

static constexpr std::string_view kMark = "recorded", kBefore = ": ";

bool isRecorded(const Winner &winner) { return winner.isTuned && winner.medianUs > 0 && winner.driverVersion == 0; }

bool isRecorded(const Trial &trial) {
  const std::string_view message = trial.message;
  const std::string_view rest = message.substr(std::min(kMark.size(), message.size()));
  return message.substr(0, kMark.size()) == kMark && (rest.empty() || rest.substr(0, kBefore.size()) == kBefore);
}

std::string recordedMessage(const std::string &message) {
  return std::string(kMark) + (message.empty() ? "" : std::string(kBefore) + message);
}

std::string messageOf(const Trial &trial) {
  if (!isRecorded(trial))
    return trial.message;
  return trial.message.size() == kMark.size() ? "" : trial.message.substr(kMark.size() + kBefore.size());
}

} // namespace heddle
