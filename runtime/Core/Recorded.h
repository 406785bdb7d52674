//===- Recorded.h - times that were played back -----------------*- C++ -*-===//
// Owns the mark of what a recording gave in the place of a measurement (`heddle tune --recorded`). A winner of a
// measurement names the driver that launched it, a recorded one none; a trial says it in its message.
#ifndef HEDDLE_RUNTIME_CORE_RECORDED_H
#define HEDDLE_RUNTIME_CORE_RECORDED_H

#include "runtime/Core/KernelRecord.h"

namespace heddle {

bool isRecorded(const Winner &winner);
bool isRecorded(const Trial &trial);

// The message of a trial that was played back, from the one that it was recorded with.
std::string recordedMessage(const std::string &message);
// What a trial says beside its mark: why it was not measured; empty if it was.
std::string messageOf(const Trial &trial);

} // namespace heddle

#endif
