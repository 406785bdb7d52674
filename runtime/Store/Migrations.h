//===- Migrations.h - the versions of the schema ----------------------------===//
// Owns the list that leads from an empty file to the newest schema. Entry i makes version i + 1.
#ifndef HEDDLE_RUNTIME_STORE_MIGRATIONS_H
#define HEDDLE_RUNTIME_STORE_MIGRATIONS_H

#include "runtime/Store/Sqlite.h"

#include <vector>

namespace heddle {

// SQL scripts without transaction statements. Append only.
const std::vector<const char *> &storeMigrations();

inline int64_t newestStoreVersion() { return int64_t(storeMigrations().size()); }

// Brings the file to the end of the list in one transaction; does nothing if it is there. Many processes
// may do so at once. Refuses other applications' files (corrupt) and newer ones.
Status migrateStore(sqlite::Database &database, const std::vector<const char *> &migrations);

// For a file that is only read: ok if it is a store of the version `newest`, or of an older one that this connection
// can see as one of that version (views of its own; the file stays as it is); unsupported if it is older still.
Status prepareToRead(sqlite::Database &database, int64_t newest);

} // namespace heddle

#endif
