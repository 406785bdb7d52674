// Owns the one place where a struct with a field list becomes column names, bound values and a row read
// back. Internal to runtime/Store; schema.sql spells the same columns and a test compares the two.
#pragma once

#include "runtime/Core/FieldText.h"
#include "runtime/Core/KernelRecord.h"
#include "runtime/Core/LinkRecord.h"
#include "runtime/Core/Plausible.h"
#include "runtime/Store/Sqlite.h"

#include <string_view>
#include <vector>

namespace heddle::sqlite {

// "a, b, c" with an optional prefix before each name.
template <class T> std::string columnList(const std::string &prefix = "") {
  std::string text;
  T::fields([&](const char *name, auto) { text += (text.empty() ? "" : ", ") + prefix + name; });
  return text;
}

// The table of T, and the columns that it has beside T's fields, in the order in which they are written; the first is
// the digest of the key, where no field is the key, and `checksum` the digest of the fields.
template <class T> struct Table;
template <> struct Table<KernelRecord> {
  static constexpr const char *name = "kernels";
  static std::vector<std::string> extras() { return {"needs_checksum", "checksum"}; }
};
template <> struct Table<Winner> {
  static constexpr const char *name = "winners";
  static std::vector<std::string> extras() { return {"winner_key", "checksum"}; }
};
template <> struct Table<Trial> {
  static constexpr const char *name = "trials";
  static std::vector<std::string> extras() { return {"session_key", "checksum"}; }
};
template <> struct Table<DeviceRecord> {
  static constexpr const char *name = "devices";
  static std::vector<std::string> extras() { return {"device_key", "checksum"}; }
};
template <> struct Table<LinkRecord> {
  static constexpr const char *name = "links";
  static std::vector<std::string> extras() { return {"link_key", "checksum"}; }
};
template <> struct Table<NameRecord> {
  static constexpr const char *name = "names";
  static std::vector<std::string> extras() { return {"checksum"}; }
};

// What a lookup must know of a kernel before it reads the code.
struct KernelNeeds {
  std::string contentKey, kernelArch;
  int64_t minDriver = 0;

  template <class F> static void fields(F &&f) {
    f("content_key", &KernelNeeds::contentKey);
    f("kernel_arch", &KernelNeeds::kernelArch);
    f("min_driver", &KernelNeeds::minDriver);
  }
};
inline KernelNeeds needsOf(const KernelRecord &record) {
  return {record.contentKey, record.kernelArch, record.minDriver};
}

// "INSERT INTO table (extra, a, b) VALUES (?, ?, ?)": the extra columns before those of T.
template <class T> std::string insertSql() {
  std::string columns, marks;
  auto add = [&](const std::string &name) {
    columns += (columns.empty() ? "" : ", ") + name;
    marks += marks.empty() ? "?" : ", ?";
  };
  for (const std::string &name : Table<T>::extras())
    add(name);
  T::fields([&](const char *name, auto) { add(name); });
  return std::string("INSERT INTO ") + Table<T>::name + " (" + columns + ") VALUES (" + marks + ")";
}

// "checksum = excluded.checksum, a = excluded.a" for the update half of an upsert.
template <class T> std::string updateList() {
  std::string text;
  for (const std::string &name : Table<T>::extras())
    text += (text.empty() ? "" : ", ") + name + " = excluded." + name;
  T::fields(
      [&](const char *name, auto) { text += (text.empty() ? "" : ", ") + std::string(name) + " = excluded." + name; });
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

// "SELECT rowid, checksum, a, b FROM table ", for readCheckedRow.
template <class T> std::string selectSql() {
  return "SELECT rowid, checksum, " + columnList<T>() + " FROM " + Table<T>::name + " ";
}

// What is wrong with the numbers of a row, behind the row's name in a message; empty if nothing is.
template <class T> std::string wrongNumbersOf(const T &row) {
  std::string wrong;
  if constexpr (std::is_same_v<T, Winner> || std::is_same_v<T, Trial> || std::is_same_v<T, LinkRecord>)
    wrong = wrongNumbers(row);
  return wrong.empty() ? wrong : ": " + wrong;
}

// Reads a row of selectSql from column `first` on; corrupt if it is not the row that its checksum is of, or holds
// numbers that no measurement gave. `path` is for messages.
template <class T> Status readCheckedRow(Statement &statement, T &row, const std::string &path, int first = 0) {
  int64_t number = 0;
  std::string checksum;
  HEDDLE_TRY(statement.read(first, number));
  HEDDLE_TRY(statement.read(first + 1, checksum));
  HEDDLE_TRY(readRow(statement, row, first + 2));
  const std::string wrong = checksum == fieldDigest(row) ? wrongNumbersOf(row) : " does not match its checksum";
  if (wrong.empty())
    return {};
  return Status::corrupt("store '" + path + "': row " + std::to_string(number) + " of " + Table<T>::name + wrong +
                         "; restore the file from a copy or tune again into a new one");
}

// A row as it will be read back.
template <class T> T asStored(T row) {
  T::fields([&](const char *, auto member) {
    if constexpr (std::is_same_v<decltype(row.*member), double &>)
      row.*member = storedReal(row.*member);
  });
  return row;
}

} // namespace heddle::sqlite
