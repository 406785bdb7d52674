#include "compiler/Session/DatabasePaths.h"

#include "runtime/Store/StoreStack.h"

#include <cstdlib>
#include <filesystem>

namespace fs = std::filesystem;

namespace heddle {
namespace {

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

fs::path databaseInCache() {
  fs::path cache = variable("XDG_CACHE_HOME");
  if (!cache.is_absolute())
    cache = fs::path(variable("HOME")) / ".cache";
  return cache / "heddle" / "kernels.db";
}

} // namespace

std::string userDatabase() {
  std::string named = variable("HEDDLE_DB");
  return named.empty() ? databaseInCache().string() : named;
}

Result<Store> openUserDatabase(const std::string &path, const StoreOptions &options) {
  const fs::path inCache = databaseInCache();
  std::error_code error;
  const bool isMade =
      options.mode == StoreMode::readWrite && path == inCache && fs::create_directories(inCache.parent_path(), error);
  if (isMade) // whatever the mask says: others may put nothing there
    fs::permissions(inCache.parent_path(), fs::perms::owner_all, error);
  if (error)
    return Status::io("cannot make the folder of '" + path + "': " + error.message());
  return Store::open(path, options);
}

std::vector<std::string> shippedDatabases() { return splitPaths(variable("HEDDLE_SHIPPED_DB")); }

} // namespace heddle
