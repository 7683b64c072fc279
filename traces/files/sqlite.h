// Reads SQLite databases through libsqlite3, which is loaded on first use: the program starts
// without it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bubblescope::traces {

/// The columns of one result row; valid during the visit only.
class SqliteRow {
 public:
  virtual ~SqliteRow() = default;
  virtual std::optional<std::int64_t> integer(int column) const = 0;  ///< nothing where it is NULL
  virtual std::string text(int column) const = 0;                     ///< empty where it is NULL
};

/// A database that is open for reading and closes itself. Nothing is written, not even beside it;
/// values of more than 1 MiB and queries out of proportion to its size are refused.
class SqliteDatabase {
 public:
  /// Throws Error where there is no libsqlite3 (Fault::kMachine) or the file is not a database.
  explicit SqliteDatabase(const std::string& path);
  ~SqliteDatabase();
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  /// Visits every result row, in order. Throws Error with SQLite's message.
  void query(const std::string& sql, const std::function<void(const SqliteRow&)>& visit) const;

  /// Returns the columns that a table stores; empty where there is no such table. Views, virtual
  /// tables and computed columns are left out: reading them would execute what the file says.
  std::vector<std::string> columns(const std::string& table) const;

 private:
  bool is_table(const std::string& name) const;

  struct Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace bubblescope::traces
