// Owns what can be said of a wait for another process: who holds the locks of a file, and when somebody is told.
#pragma once

#include <functional>
#include <string>

namespace heddle {

// A wait that has taken a second.
struct StoreWait {
  std::string path;
  std::string holder; // "process 4711 (heddle)", or "another process"
  int limitMs = 0;    // when it is given up, from its begin
};

struct BusyRule {
  int limitMs = 0;
  std::function<void(const StoreWait &)> onWait = {}; // once for each such wait; may be empty
};

// Who holds a lock of the SQLite file at `path`, or of the index of its log, as the system has it: "process 4711
// (heddle)"; "another process" where it does not say.
std::string lockHolder(const std::string &path);

} // namespace heddle
