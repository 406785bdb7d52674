//===- Schema.h - what a file must be to be a store -------------------------===//
// Owns the version of the schema and the check that a file has this one and nothing else: a trigger, a view or a
// changed column of somebody else's would act where rows are written and read.
#ifndef HEDDLE_RUNTIME_STORE_SCHEMA_H
#define HEDDLE_RUNTIME_STORE_SCHEMA_H

#include "runtime/Store/Sqlite.h"

namespace heddle {

// Goes up with every change of schema.sql.
constexpr int64_t kStoreVersion = 4;

// Makes the schema in an empty file, in one transaction; does nothing if there is one. Many processes may do so at
// once.
Status createSchema(sqlite::Database &database);

// Whether the connection sees a store of this version and nothing else, at one moment. notFound: the file is empty;
// corrupt: it is another application's or not exactly a store; newer, unsupported: a store of another version.
Status checkSchema(sqlite::Database &database);

} // namespace heddle

#endif
