//===- Rows.h - SQL from field lists ----------------------------------------===//
// Owns the one place where a struct with a field list becomes column names, bound values and a row read
// back. Internal to runtime/Store; schema.sql spells the same columns and a test compares the two.
#ifndef HEDDLE_RUNTIME_STORE_ROWS_H
#define HEDDLE_RUNTIME_STORE_ROWS_H

#include "runtime/Store/Sqlite.h"

#include <string_view>

namespace heddle::sqlite {

// "a, b, c" with an optional prefix before each name.
template <class T> std::string columnList(const std::string &prefix = "") {
  std::string text;
  T::fields([&](const char *name, auto) { text += (text.empty() ? "" : ", ") + prefix + name; });
  return text;
}

// "INSERT INTO table (extra, a, b) VALUES (?, ?, ?)": one extra column before those of T, unless empty.
template <class T> std::string insertSql(const std::string &table, const std::string &extraColumn) {
  std::string columns = extraColumn, marks = extraColumn.empty() ? "" : "?";
  T::fields([&](const char *name, auto) {
    columns += (columns.empty() ? "" : ", ") + std::string(name);
    marks += marks.empty() ? "?" : ", ?";
  });
  return "INSERT INTO " + table + " (" + columns + ") VALUES (" + marks + ")";
}

// "a = excluded.a, b = excluded.b" for the update half of an upsert.
template <class T> std::string updateList() {
  std::string text;
  T::fields([&](const char *name, auto) { text += (text.empty() ? "" : ", ") + std::string(name) + " = excluded." + name; });
  return text;
}

template <class T> void bindRow(Statement &statement, const T &row) {
  T::fields([&](const char *name, auto member) {
    if constexpr (std::is_same_v<decltype(row.*member), const std::string &>) {
      if (std::string_view(name) == "cubin") {
        statement.bind(Blob{row.*member});
        return;
      }
    }
    statement.bind(row.*member);
  });
}

// Reads T from the columns starting at `first`, in the order of columnList<T>().
template <class T> Status readRow(Statement &statement, T &row, int first = 0) {
  Status status;
  int index = first;
  T::fields([&](const char *, auto member) {
    if (status.isOk())
      status = statement.read(index++, row.*member);
  });
  return status;
}

} // namespace heddle::sqlite

#endif
