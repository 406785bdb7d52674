#include "runtime/Store/Location.h"
#include "runtime/Store/Store.h"

#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <vector>

namespace heddle {
namespace {

struct FileSystem {
  int64_t type;
  const char *name;
};

// From the manual page of statfs(2) and the documentation of the file systems. FUSE is here because
// what is behind it is unknown: set StoreOptions::fileSystemType for a local one.
constexpr FileSystem kNetworkFileSystems[] = {{0x6969, "NFS"},          {0x517b, "SMB"},        {0xff534d42, "CIFS"},
                                              {0xfe534d42, "SMB2"},     {0x0bd00bd0, "Lustre"}, {0x65735546, "FUSE"},
                                              {0x01021997, "9P"},       {0x00c36400, "Ceph"},   {0x47504653, "GPFS"},
                                              {0x5346414f, "AFS"},      {0x6b414653, "AFS"},    {0x19830326, "BeeGFS"},
                                              {0x20030528, "OrangeFS"}, {0x73757245, "Coda"},   {0x7461636f, "OCFS2"},
                                              {0x01161970, "GFS2"},     {0x786f4256, "vboxsf"}, {0xbacbacbc, "vmhgfs"},
                                              {0x013111a8, "IBRIX"},    {0xaad7aaea, "PanFS"},  {0x61756673, "aufs"}};

Status ioFailure(const std::string &path, const char *what) {
  return Status::io("open store '" + path + "': cannot " + what + ": " + std::strerror(errno));
}

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

int64_t bigEndian(const unsigned char *bytes) {
  return int64_t(bytes[0]) << 24 | int64_t(bytes[1]) << 16 | int64_t(bytes[2]) << 8 | bytes[3];
}

constexpr size_t kHeaderBytes = 100;
constexpr const char *kSideSuffixes[] = {"-wal", "-journal", "-shm"};

// A file as SQLite opens it, which knows the connections of this process to it: whoever else closes a descriptor of a
// file takes the process's locks on it away (fcntl(2)).
class HeaderFile {
public:
  explicit HeaderFile(const std::string &path) {
    if (sqlite3_initialize() != SQLITE_OK || !(system = sqlite3_vfs_find(nullptr)))
      return;
    std::vector<char> whole(size_t(system->mxPathname) + 1);
    constexpr int kPrimaryCode = 0xff; // the others say that there is a link on the way
    if ((system->xFullPathname(system, path.c_str(), int(whole.size()), whole.data()) & kPrimaryCode) != SQLITE_OK)
      return;
    name = sqlite3_create_filename(whole.data(), "", "", 0, nullptr);
    room.resize(size_t(system->szOsFile) / sizeof(std::max_align_t) + 1);
    isOpen =
        name && system->xOpen(system, name, file(), SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK;
  }
  ~HeaderFile() {
    if (isOpen)
      file()->pMethods->xClose(file());
    sqlite3_free_filename(name);
  }
  HeaderFile(const HeaderFile &) = delete;
  HeaderFile &operator=(const HeaderFile &) = delete;

  // The number of bytes read, at most kHeaderBytes; below 0: it cannot be read.
  int64_t read(unsigned char *header) {
    sqlite3_int64 bytes = 0;
    if (!isOpen || file()->pMethods->xFileSize(file(), &bytes) != SQLITE_OK)
      return -1;
    bytes = std::min<sqlite3_int64>(bytes, kHeaderBytes);
    return bytes == 0 || file()->pMethods->xRead(file(), header, int(bytes), 0) == SQLITE_OK ? bytes : -1;
  }

private:
  sqlite3_file *file() { return reinterpret_cast<sqlite3_file *>(room.data()); }

  sqlite3_vfs *system = nullptr;
  decltype(sqlite3_create_filename("", "", "", 0, nullptr)) name = nullptr; // char *, or one to const in later versions
  std::vector<std::max_align_t> room;                                       // of what the system calls a file
  bool isOpen = false;
};

// The number of bytes read, at most kHeaderBytes.
Result<size_t> readHeader(const StorePlace &place, unsigned char *header) {
  errno = 0;
  HeaderFile file(place.path);
  const int64_t count = file.read(header);
  if (count < 0)
    return ioFailure(place.shown, "read it");
  return size_t(count);
}

bool isSqliteHeader(const unsigned char *header) { return std::memcmp(header, "SQLite format 3", 16) == 0; }

bool isStoreHeader(const unsigned char *header) {
  return isSqliteHeader(header) && bigEndian(header + 68) == kStoreApplicationId;
}

bool isForeignOwner(const struct stat &facts) { return facts.st_uid != ::geteuid() && facts.st_uid != 0; }

Status checkFiles(const StorePlace &place) {
  std::vector<std::string> files = {place.path};
  for (const char *suffix : kSideSuffixes)
    files.push_back(place.path + suffix);
  for (const std::string &file : files) {
    struct stat facts;
    if (::lstat(file.c_str(), &facts) != 0)
      continue;
    const bool isForeign = isForeignOwner(facts), isShared = (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    if (isForeign || isShared)
      return Status::denied("open store '" + file +
                            "': " + (isForeign ? "another user owns it" : "other users may write it") +
                            ", and it holds code; take away their right to write, or allow foreign writers explicitly");
  }
  return {};
}

// A group that has its user's number is that user's alone, unless a list of rights beside the mode says more.
bool othersMayWrite(const std::string &folder, const struct stat &facts) {
  const bool isGroupPrivate =
      facts.st_gid == facts.st_uid && ::getxattr(folder.c_str(), "system.posix_acl_access", nullptr, 0) < 0;
  return (facts.st_mode & S_IWOTH) || ((facts.st_mode & S_IWGRP) && !isGroupPrivate);
}

} // namespace

std::optional<std::string> networkFileSystemName(int64_t type) {
  for (const FileSystem &fileSystem : kNetworkFileSystems)
    if (fileSystem.type == (type & 0xffffffff))
      return fileSystem.name;
  return std::nullopt;
}

Result<int64_t> fileSystemType(const std::string &path) {
  struct statfs facts;
  if (::statfs(path.c_str(), &facts) == 0 || ::statfs(folderOf(path).c_str(), &facts) == 0)
    return int64_t(facts.f_type) & 0xffffffff;
  return ioFailure(path, "look at its folder");
}

Result<StorePlace> findPlace(const std::string &path) {
  StorePlace place{path, path};
  struct stat facts; // of the link first: another process may make the file at any moment
  const bool isLink = ::lstat(path.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode);
  place.exists = ::stat(path.c_str(), &facts) == 0;
  if (!place.exists && errno != ENOENT)
    return ioFailure(path, "look at it");
  if (place.exists && !S_ISREG(facts.st_mode))
    return Status::invalidArgument("open store '" + path + "': expected a regular file");
  if (!place.exists && isLink)
    return Status::invalidArgument("open store '" + path + "': it is a link to a file that is not there");
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path whole =
      place.exists ? fs::canonical(path, error) : fs::canonical(folderOf(path), error) / fs::path(path).filename();
  if (!error)
    place.path = whole.string();
  return place;
}

static bool isStore(const std::string &path) {
  unsigned char header[kHeaderBytes] = {};
  const Result<StorePlace> place = findPlace(path);
  if (!place || !place->exists)
    return false;
  const Result<size_t> count = readHeader(*place, header);
  return count && *count == kHeaderBytes && isStoreHeader(header);
}

bool holdsStore(const std::string &path) {
  if (isStore(path))
    return true;
  for (const std::string suffix : kSideSuffixes)
    if (path.size() > suffix.size() && path.compare(path.size() - suffix.size(), suffix.size(), suffix) == 0 &&
        isStore(path.substr(0, path.size() - suffix.size())))
      return true;
  return false;
}

Result<bool> othersMayAddFiles(const StorePlace &place) {
  HEDDLE_TRY(checkFiles(place));
  bool isNearest = true, mayAdd = false;
  for (std::string folder = folderOf(place.path);; folder = folderOf(folder), isNearest = false) {
    struct stat facts;
    if (::stat(folder.c_str(), &facts) != 0)
      return ioFailure(place.shown, "look at its folder");
    const bool isForeign = isNearest && isForeignOwner(facts), isShared = othersMayWrite(folder, facts),
               isSticky = facts.st_mode & S_ISVTX;
    if (isForeign || (isShared && !isSticky))
      return Status::denied(
          "open store '" + place.shown + "': " + (isForeign ? "another user owns" : "other users may write") +
          " the folder '" + folder +
          "', who could put code in its place; keep it in a folder of your own, or allow foreign writers explicitly");
    mayAdd |= isNearest && isShared;
    if (folder == "/" || folder == ".")
      return mayAdd;
  }
}

Status checkOnlyName(const std::string &path, const std::string &operation) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0)
    return Status::io(operation + ": cannot look at it: " + std::strerror(errno));
  if (facts.st_nlink <= 1)
    return {};
  return Status::denied(operation + ": the file has " + std::to_string(facts.st_nlink) +
                        " names (hard links), and what is written by one is not seen by the others; end what has it "
                        "open, then remove the other names (`find DIR -samefile " +
                        path + "` lists them), or make a copy (cp) and write to that");
}

Status checkSchemaVersion(const std::string &shownPath, int64_t found, StoreVersions versions) {
  const std::string text =
      "open store '" + shownPath + "': its schema has version " + std::to_string(found) + ", this program ";
  if (found > versions.newest)
    return Status::newer(text + "knows up to " + std::to_string(versions.newest) +
                         "; update the program, the file was left as it is");
  if (found < versions.oldest)
    return Status::unsupported(text + "reads versions " + std::to_string(versions.oldest) + " to " +
                               std::to_string(versions.newest) +
                               " only; compile or tune into a new file, this one was left as it is");
  return {};
}

static bool hasBytes(const std::string &file) {
  struct stat facts;
  return ::stat(file.c_str(), &facts) == 0 && facts.st_size > 0;
}

bool hasEmptyLog(const StorePlace &place) {
  struct stat facts;
  return ::stat((place.path + "-wal").c_str(), &facts) == 0 && facts.st_size == 0;
}

bool hasJournal(const StorePlace &place) { return hasBytes(place.path + "-journal"); }

Status checkStoreHeader(const StorePlace &place, StoreVersions versions) {
  unsigned char header[kHeaderBytes] = {};
  HEDDLE_ASSIGN(size_t count, readHeader(place, header));
  // Pages reach the disk in any order: where the journal of its making is left, the first may be missing.
  const bool isUnwritten =
      count == 0 ||
      (hasJournal(place) && std::all_of(header, header + count, [](unsigned char byte) { return byte == 0; }));
  if (isUnwritten)
    return Status::notFound("open store '" + place.shown + "': the file is empty; publishing or tuning fills it");
  if (count < kHeaderBytes || !isSqliteHeader(header))
    return Status::corrupt("open store '" + place.shown +
                           "': this is not a store (no SQLite header); it was left as it is");
  if (!isStoreHeader(header))
    return Status::corrupt("open store '" + place.shown +
                           "': this SQLite file belongs to another application; it was left as it is");
  return checkSchemaVersion(place.shown, bigEndian(header + 60), versions);
}

std::string recoveryAdvice(const StorePlace &place) {
  return "'" + place.path +
         "-journal' holds what undoes a write that was not finished; run `heddle cache verify --db=" + place.shown +
         "` as a user who may write the file and its folder";
}

Status checkNoSideFiles(const StorePlace &place) {
  const std::string text = "open store '" + place.shown + "' as one that never changes: ";
  if (hasJournal(place))
    return Status::invalidArgument(text + recoveryAdvice(place));
  if (hasBytes(place.path + "-wal"))
    return Status::invalidArgument(text + "'" + place.path +
                                   "-wal' holds rows that are not in it; export it to a file that is fit to ship");
  return {};
}

std::string fileUri(const std::string &path, const std::string &query) {
  constexpr const char *kHex = "0123456789ABCDEF";
  std::string uri = "file:";
  if (path.compare(0, 1, "/") == 0)
    uri += "//";
  for (unsigned char c : path) {
    bool isPlain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' || c == '.' ||
                   c == '-' || c == '_';
    if (isPlain)
      uri += char(c);
    else
      uri += std::string("%") + kHex[c >> 4] + kHex[c & 15];
  }
  return uri + "?" + query;
}

} // namespace heddle
