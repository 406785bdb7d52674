#include "runtime/Store/StoreImpl.h"

#include "runtime/Store/Location.h"

#include <algorithm>
#include <iterator>
#include <sqlite3.h>
#include <tuple>
#include <vector>

namespace heddle {
namespace {

constexpr char kSchemaSql[] =
#include "runtime/Store/heddle_schema.inc"
    ;

// A line of sqlite_schema without the number of its page.
struct SchemaObject {
  std::string type, name, table, sql;
  auto values() const { return std::tie(type, name, table, sql); }
  bool operator<(const SchemaObject &other) const { return values() < other.values(); }
  bool operator==(const SchemaObject &other) const { return values() == other.values(); }
};

using Objects = std::vector<SchemaObject>; // sorted

Result<Objects> readObjects(sqlite::Database &database) {
  HEDDLE_ASSIGN(sqlite::Statement statement,
                database.prepare("SELECT type, name, tbl_name, ifnull(sql, '') FROM sqlite_schema"));
  Objects objects;
  while (true) {
    HEDDLE_ASSIGN(bool hasRow, statement.step());
    if (!hasRow)
      break;
    SchemaObject &object = objects.emplace_back();
    int column = 0;
    for (std::string *value : {&object.type, &object.name, &object.table, &object.sql})
      HEDDLE_TRY(statement.read(column++, *value));
  }
  std::sort(objects.begin(), objects.end());
  return objects;
}

// What schema.sql makes, once for the process.
Result<Objects> makeExpected() {
  HEDDLE_ASSIGN(sqlite::Database database,
                sqlite::Database::open(":memory:", ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, {}));
  HEDDLE_TRY(database.execute(kSchemaSql));
  return readObjects(database);
}

struct Identity {
  int64_t application = 0, version = 0;
  Objects objects;
  bool isEmpty() const { return application == 0 && version == 0 && objects.empty(); }
};

Result<Identity> readIdentity(sqlite::Database &database) {
  Identity identity;
  HEDDLE_ASSIGN(identity.application, database.queryInteger("PRAGMA application_id"));
  HEDDLE_ASSIGN(identity.version, database.queryInteger("PRAGMA user_version"));
  HEDDLE_ASSIGN(identity.objects, readObjects(database));
  return identity;
}

// As one moment has it: between two statements another process may create the store. A schema that SQLite cannot make
// sense of is damage, also where SQLite calls it a mistake in a statement.
Result<Identity> readIdentityAtOnce(sqlite::Database &database) {
  HEDDLE_ASSIGN(sqlite::Transaction snapshot, sqlite::Transaction::begin(database, sqlite::Transaction::Kind::reading));
  Result<Identity> identity = readIdentity(database);
  if (identity.status().code() == StatusCode::internal && database.failureCode() == SQLITE_ERROR)
    return Status::corrupt(identity.status().message() +
                           "; the file was left as it is, restore it from a copy or tune into a new one");
  return identity;
}

Status checkOwner(const sqlite::Database &database, const Identity &identity) {
  if (identity.application != kStoreApplicationId)
    return Status::corrupt("open store '" + database.path() +
                           "': this SQLite file belongs to another application; it was left as it is");
  return checkSchemaVersion(database.path(), identity.version, kStoreVersions);
}

bool isOfLinks(const SchemaObject &object) { return object.table == sqlite::Table<LinkRecord>::name; }

Objects withoutLinks(const Objects &whole) {
  Objects objects;
  std::remove_copy_if(whole.begin(), whole.end(), std::back_inserter(objects), isOfLinks);
  return objects;
}

// A store of the version before, and nothing else.
bool lacksLinks(const Identity &identity, const Objects &whole) {
  return identity.application == kStoreApplicationId && identity.version == kVersionWithoutLinks &&
         identity.objects == withoutLinks(whole);
}

std::string linksSql(const Objects &whole) {
  return std::find_if(whole.begin(), whole.end(),
                      [](const SchemaObject &object) { return isOfLinks(object) && object.type == "table"; })
      ->sql;
}

// "the trigger x" where `found` and `expected` part.
std::string firstDifference(const Objects &found, const Objects &expected) {
  const auto [mine, theirs] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
  const bool isMissing = mine == found.end() || (theirs != expected.end() && *theirs < *mine);
  const SchemaObject &object = isMissing ? *theirs : *mine;
  return "the " + object.type + " " + object.name + (isMissing ? " is missing or changed" : " is not one of a store's");
}

} // namespace

Status createSchema(sqlite::Database &database) {
  static const Result<Objects> whole = makeExpected();
  HEDDLE_TRY(whole.status());
  HEDDLE_ASSIGN(Identity before, readIdentityAtOnce(database));
  if (!before.isEmpty() && !lacksLinks(before, *whole))
    return checkOwner(database, before);
  HEDDLE_ASSIGN(sqlite::Transaction transaction,
                sqlite::Transaction::begin(database, sqlite::Transaction::Kind::writing));
  HEDDLE_ASSIGN(Identity now, readIdentity(database)); // another process may have been faster
  if (!now.isEmpty() && !lacksLinks(now, *whole))
    return checkOwner(database, now);
  HEDDLE_TRY(database.execute(now.isEmpty() ? kSchemaSql : linksSql(*whole).c_str()));
  HEDDLE_TRY(database.execute(("PRAGMA application_id = " + std::to_string(kStoreApplicationId)).c_str()));
  HEDDLE_TRY(database.execute(("PRAGMA user_version = " + std::to_string(kStoreVersion)).c_str()));
  return transaction.commit();
}

Status checkSchema(sqlite::Database &database) {
  static const Result<Objects> expected = makeExpected();
  HEDDLE_TRY(expected.status());
  HEDDLE_ASSIGN(Identity identity, readIdentityAtOnce(database));
  if (identity.isEmpty())
    return Status::notFound("open store '" + database.path() + "': the file is empty; publishing or tuning fills it");
  HEDDLE_TRY(checkOwner(database, identity));
  const bool isBefore = identity.version == kVersionWithoutLinks;
  const Objects objects = isBefore ? withoutLinks(*expected) : *expected;
  if (identity.objects != objects)
    return Status::corrupt("open store '" + database.path() +
                           "': its schema is not that of a store: " + firstDifference(identity.objects, objects) +
                           "; the file was left as it is, restore it from a copy or tune into a new one");
  return {};
}

} // namespace heddle
