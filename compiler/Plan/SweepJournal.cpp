#include "compiler/Plan/SweepJournal.h"
#include "runtime/Core/Plausible.h"
#include "runtime/Core/ReadFile.h"
#include "runtime/Core/SafeText.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <sys/file.h>
#include <unistd.h>

namespace heddle {

using Json = nlohmann::ordered_json;

Result<Shard> Shard::parse(const std::string &text) {
  Shard shard;
  const char *end = text.data() + text.size();
  const auto [slash, first] = std::from_chars(text.data(), end, shard.index);
  if (first == std::errc() && slash != end && *slash == '/') {
    const auto [stop, second] = std::from_chars(slash + 1, end, shard.count);
    if (second == std::errc() && stop == end && shard.index >= 0 && shard.index < shard.count)
      return shard;
  }
  return Status::invalidArgument("expected a shard as I/N with 0 <= I < N, got '" + text + "'");
}

static Status systemError(const std::string &path, const char *what) {
  return Status::io("journal '" + path + "': cannot " + what + ": " + std::strerror(errno));
}

static Result<std::string> readJournalText(const std::string &path) {
  constexpr int64_t kMostBytes = int64_t(256) << 20; // hundreds of thousands of items
  return readTextFile(path, {"journal", kMostBytes});
}

Result<SweepJournal> SweepJournal::open(const std::string &path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0)
    return systemError(path, "open");
  SweepJournal journal(path, fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0)
    return Status::unavailable("journal '" + path + "': another process runs this shard");
  HEDDLE_TRY(readJournal(path).status());
  // What a kill left of a line goes, so that the next one begins where a line does.
  HEDDLE_ASSIGN(const std::string text, readJournalText(path));
  const size_t lastLine = text.rfind('\n');
  if (::ftruncate(fd, lastLine == std::string::npos ? 0 : off_t(lastLine + 1)) != 0 || ::lseek(fd, 0, SEEK_END) < 0)
    return systemError(path, "write");
  return journal;
}

SweepJournal::SweepJournal(SweepJournal &&other) noexcept : path(std::move(other.path)), fd(other.fd) { other.fd = -1; }

SweepJournal::~SweepJournal() {
  if (fd >= 0)
    ::close(fd);
}

Status SweepJournal::append(const SweepEntry &entry) {
  const Json json = {{"schema", kJournalSchema},    {"item", entry.item},       {"done", entry.isDone},
                     {"message", entry.message},    {"device", entry.device},   {"host", entry.host},
                     {"median_us", entry.medianUs}, {"seconds", entry.seconds}, {"ended_unix", entry.endedUnix}};
  const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const off_t begin = ::lseek(fd, 0, SEEK_END);
  for (size_t at = 0; at < line.size();) {
    const ssize_t written = ::write(fd, line.data() + at, line.size() - at);
    if (written < 0 && errno != EINTR) {
      const Status failure = systemError(path, "write");
      static_cast<void>(::ftruncate(fd, begin)); // if not, opening cuts the half line off
      return failure;
    }
    at += written > 0 ? size_t(written) : 0;
  }
  return ::fsync(fd) == 0 ? Status() : systemError(path, "flush");
}

static Result<SweepEntry> entryOf(const std::string &line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  SweepEntry entry;
  if (json.is_object() && json.value("schema", kJournalSchema) > kJournalSchema) // the first journals have none
    return Status::newer("an entry of a newer version of heddle");
  try {
    entry.item = json.at("item").get<std::string>();
    entry.isDone = json.at("done").get<bool>();
    entry.message = json.at("message").get<std::string>();
    entry.device = json.at("device").get<std::string>();
    entry.host = json.at("host").get<std::string>();
    entry.medianUs = json.at("median_us").get<double>();
    entry.seconds = json.at("seconds").get<double>();
    entry.endedUnix = json.at("ended_unix").get<int64_t>();
  } catch (const Json::exception &) {
    return Status::corrupt("no entry of a sweep: " + safeLine(line, 80));
  }
  if (const std::string wrong = entry.isDone ? wrongTime(entry.medianUs) : ""; !wrong.empty())
    return Status::corrupt("median_us: " + wrong);
  return entry;
}

Result<std::vector<SweepEntry>> readJournal(const std::string &path) {
  std::vector<SweepEntry> entries;
  const Result<std::string> text = readJournalText(path);
  if (!text && text.status().code() == StatusCode::notFound)
    return entries;
  HEDDLE_TRY(text.status());
  int64_t number = 0;
  size_t end = 0; // what follows the last newline is a line that was cut
  for (size_t begin = 0; (end = text->find('\n', begin)) != std::string::npos; begin = end + 1) {
    ++number;
    Result<SweepEntry> entry = entryOf(text->substr(begin, end - begin));
    if (!entry)
      return Status(entry.status().code(), path + ":" + std::to_string(number) + ": " + entry.status().message());
    entries.push_back(entry.take());
  }
  return entries;
}

static std::string shardFile(const std::string &folder, const Shard &shard, const char *suffix) {
  return (std::filesystem::path(folder) / ("shard-" + shard.str() + suffix)).string();
}

std::string shardDatabase(const std::string &folder, const Shard &shard) { return shardFile(folder, shard, ".db"); }
std::string shardJournal(const std::string &folder, const Shard &shard) { return shardFile(folder, shard, ".jsonl"); }

static std::vector<std::string> shardFiles(const std::string &folder, const std::string &suffix) {
  std::vector<std::string> files;
  std::error_code none;
  for (const auto &entry : std::filesystem::directory_iterator(folder, none))
    if (entry.path().filename().string().rfind("shard-", 0) == 0 && entry.path().extension() == suffix)
      files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> shardDatabases(const std::string &folder) { return shardFiles(folder, ".db"); }
std::vector<std::string> shardJournals(const std::string &folder) { return shardFiles(folder, ".jsonl"); }

static Status checkListed(const std::string &folder) {
  std::error_code error;
  std::filesystem::directory_iterator(folder, error);
  if (!error || error == std::errc::no_such_file_or_directory)
    return {};
  return Status::io("'" + folder + "': cannot list the folder: " + error.message());
}

Result<std::vector<SweepEntry>> readSweep(const std::string &folder) {
  HEDDLE_TRY(checkListed(folder));
  std::map<std::string, SweepEntry> last;
  for (const std::string &path : shardJournals(folder)) {
    HEDDLE_ASSIGN(std::vector<SweepEntry> entries, readJournal(path));
    for (SweepEntry &entry : entries) {
      const auto [known, isNew] = last.try_emplace(entry.item, entry);
      if (!isNew && entry.isDone >= known->second.isDone)
        known->second = std::move(entry);
    }
  }
  std::vector<SweepEntry> result;
  for (auto &item : last)
    result.push_back(std::move(item.second));
  return result;
}

} // namespace heddle
