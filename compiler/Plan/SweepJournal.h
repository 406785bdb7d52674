// Owns the file beside a shard's database: a line of JSON for each item that came to an end, flushed to the disk before
// the next one begins. A line that a kill cut short is no line.
#pragma once

#include "runtime/Core/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

/// "schema" of every line of a journal: docs/json.md.
inline constexpr int kJournalSchema = 1;

/// The end of one item (TuneItem::str).
struct SweepEntry {
  std::string item;
  bool isDone = false; ///< else it failed, and the next run tries it again
  std::string message; ///< why it failed; empty if done
  std::string device;  ///< the GPU's name
  std::string host;
  double medianUs = 0; ///< of the winner; 0 if failed
  double seconds = 0;  ///< that it took
  int64_t endedUnix = 0;
};

/// Part `index` of `count`: the items whose number has that remainder.
struct Shard {
  int64_t index = 0, count = 1;
  /// "3/8", counted from 0. invalidArgument for anything else.
  static Result<Shard> parse(const std::string &text);
  bool has(size_t item) const { return int64_t(item) % count == index; }
  std::string str() const { return std::to_string(index) + "-of-" + std::to_string(count); }
};

/// Appends to one journal, which no other process may do meanwhile. Move-only; one thread at a time.
class SweepJournal {
public:
  /// Made if it is not there. unavailable: another process has it open; io.
  static Result<SweepJournal> open(const std::string &path);
  SweepJournal(SweepJournal &&other) noexcept;
  SweepJournal &operator=(SweepJournal &&other) = delete;
  ~SweepJournal();

  /// On the disk when it returns.
  Status append(const SweepEntry &entry);

private:
  explicit SweepJournal(std::string path, int fd) : path(std::move(path)), fd(fd) {}
  std::string path;
  int fd;
};

/// The entries of a journal, in order; none if there is no file. corrupt: a line before the last is not ours. io.
Result<std::vector<SweepEntry>> readJournal(const std::string &path);

/// The files of a sweep's folder.
std::string shardDatabase(const std::string &folder, const Shard &shard);
std::string shardJournal(const std::string &folder, const Shard &shard);
/// Those that are there, sorted: of all shards, however the sweep was cut.
std::vector<std::string> shardDatabases(const std::string &folder);
std::vector<std::string> shardJournals(const std::string &folder);

/// The last entry of each item, of all journals of the folder, none if there is no folder. One that is done is never
/// undone. io: a journal cannot be read.
Result<std::vector<SweepEntry>> readSweep(const std::string &folder);

} // namespace heddle
