// Owns what is decided before SQLite sees the file: existence, who may write it and beside it, what its header claims,
// and whether its file system can hold a write-ahead log. Never changes anything. Internal to runtime/Store.
#pragma once

#include "runtime/Core/Status.h"

#include <cstdint>
#include <optional>

namespace heddle {

constexpr int64_t kStoreApplicationId = 0x68656464; // "hedd"

// The name of a file system type (statfs f_type) over which SQLite's locks cannot be trusted, or nothing.
std::optional<std::string> networkFileSystemName(int64_t type);

// The type of the file system that holds `path`, or its folder if there is no such file.
Result<int64_t> fileSystemType(const std::string &path);

// A path as it was given, for messages, and without links, as SQLite opens it: side files lie beside the file itself.
struct StorePlace {
  std::string shown, path;
  bool exists = false;
};

// io if it cannot be told whether something exists there; invalidArgument for folders, links that lead nowhere and the
// like.
Result<StorePlace> findPlace(const std::string &path);

// Whether users other than this one and root may put files beside the store, but not replace what is there (a sticky
// folder): side files are then nobody's word. denied if they may replace the file, or may write it or its side files.
Result<bool> othersMayAddFiles(const StorePlace &place);

// denied if the file has several names (hard links): a log lies beside one of them, and who opens the file by another
// does not see its rows. `operation` begins the message: "write to store 'a.db'".
Status checkOnlyName(const std::string &path, const std::string &operation);

// Versions of the schema that a program reads.
struct StoreVersions {
  int64_t oldest, newest;
};

// The header of an existing file: corrupt (not SQLite, too short), notFound (empty), corrupt (another
// application's), newer or unsupported (a schema of another version).
Status checkStoreHeader(const StorePlace &place, StoreVersions versions);
// Of a file that is ours.
Status checkSchemaVersion(const std::string &shownPath, int64_t found, StoreVersions versions);

// Whether a log is there that holds nothing: what a connection leaves that only reads.
bool hasEmptyLog(const StorePlace &place);
// Whether the journal of a transaction that was not finished is there.
bool hasJournal(const StorePlace &place);
// What to do about it where this process may not.
std::string recoveryAdvice(const StorePlace &place);
// invalidArgument if a side file holds rows that a reader without locks would not see.
Status checkNoSideFiles(const StorePlace &place);

// A file: URI for the path with the query appended ("immutable=1").
std::string fileUri(const std::string &path, const std::string &query);

} // namespace heddle
