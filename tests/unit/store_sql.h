// What no member of Store does to a file: statements of the tests' own, to make the damage that is to be found.
#ifndef HEDDLE_TESTS_UNIT_STORE_SQL_H
#define HEDDLE_TESTS_UNIT_STORE_SQL_H

#include <doctest/doctest.h>

#include <sqlite3.h>
#include <string>

namespace heddle::test {

inline void runSql(const std::string &path, const std::string &sql) {
  sqlite3 *handle = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &handle) == SQLITE_OK);
  REQUIRE_MESSAGE(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK, sqlite3_errmsg(handle));
  sqlite3_close(handle);
}

} // namespace heddle::test

#endif
