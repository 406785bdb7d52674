//===- Location.h - where a store file lies and who may write it ------------===//
// Owns what is decided before SQLite sees the file: existence, who may write it, what its header claims,
// and whether its file system can hold a write-ahead log. Never changes anything. Internal to runtime/Store.
#ifndef HEDDLE_RUNTIME_STORE_LOCATION_H
#define HEDDLE_RUNTIME_STORE_LOCATION_H

#include "runtime/Core/Status.h"

#include <cstdint>
#include <optional>

namespace heddle {

constexpr int64_t kStoreApplicationId = 0x68656464; // "hedd"

// The name of a file system type (statfs f_type) over which SQLite's locks cannot be trusted, or nothing.
std::optional<std::string> networkFileSystemName(int64_t type);

// The type of the file system that holds `path`, or its folder if there is no such file.
Result<int64_t> fileSystemType(const std::string &path);

// True if something exists at `path`; io if that cannot be told, invalidArgument for folders and the like.
Result<bool> storeFileExists(const std::string &path);

// denied if a user other than this one and root may write the file or its side files.
Status checkForeignWriters(const std::string &path);

// The header of an existing file: corrupt (not SQLite, too short), notFound (empty), corrupt (another
// application's), newer (a schema beyond `newestVersion`).
Status checkStoreHeader(const std::string &path, int64_t newestVersion);

// invalidArgument if a side file holds rows that a reader without locks would not see.
Status checkNoSideFiles(const std::string &path);

// A file: URI for the path with the query appended ("immutable=1").
std::string fileUri(const std::string &path, const std::string &query);

} // namespace heddle

#endif
