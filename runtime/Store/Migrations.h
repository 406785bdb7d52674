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

// For a file that is only read: this connection sees a store of an older version as one of the newest, by views of its own;
// the file stays as it is. notFound: the file is empty.
Status prepareToRead(sqlite::Database &database);

} // namespace heddle

#endif
