// Owns what is meant where nobody names a database: the user's own file, and those that are only read.
#pragma once

#include "runtime/Store/Store.h"

#include <string>
#include <vector>

namespace heddle {

/// $HEDDLE_DB, else heddle/kernels.db in $XDG_CACHE_HOME or ~/.cache.
std::string userDatabase();

/// Store::open; for writing, the folder of the file in the cache is made.
Result<Store> openUserDatabase(const std::string &path, const StoreOptions &options);

/// $HEDDLE_SHIPPED_DB, separated by colons.
std::vector<std::string> shippedDatabases();

} // namespace heddle
