// The few functions of libsqlite3 that reading needs, found by name.
#include "traces/sqlite.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

#include "sim/ir/error.h"

namespace bubblescope {

namespace {

// As sqlite3.h has them; the library's interface is promised not to change.
constexpr int kOk = 0;
constexpr int kRow = 100;
constexpr int kDone = 101;
constexpr int kOpenReadOnly = 1;
constexpr int kNull = 5;

struct Functions {
  int (*open_v2)(const char*, void**, int, const char*) = nullptr;
  int (*close)(void*) = nullptr;
  const char* (*errmsg)(void*) = nullptr;
  int (*prepare_v2)(void*, const char*, int, void**, const char**) = nullptr;
  int (*step)(void*) = nullptr;
  int (*finalize)(void*) = nullptr;
  int (*column_type)(void*, int) = nullptr;
  std::int64_t (*column_int64)(void*, int) = nullptr;
  const unsigned char* (*column_text)(void*, int) = nullptr;
};

template <class Function>
void load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr)
    throw Error(Fault::kMachine, fmt::format("libsqlite3 has no {}; install a newer one", name));
}

/// The library stays open until the program ends.
Functions load_functions() {
  void* library = ::dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = ::dlopen("libsqlite3.dylib", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Error(Fault::kMachine,
                "cannot read a database without libsqlite3; install it (Debian: libsqlite3-0), or "
                "export the trace as json");
  Functions functions;
  load(library, "sqlite3_open_v2", functions.open_v2);
  load(library, "sqlite3_close", functions.close);
  load(library, "sqlite3_errmsg", functions.errmsg);
  load(library, "sqlite3_prepare_v2", functions.prepare_v2);
  load(library, "sqlite3_step", functions.step);
  load(library, "sqlite3_finalize", functions.finalize);
  load(library, "sqlite3_column_type", functions.column_type);
  load(library, "sqlite3_column_int64", functions.column_int64);
  load(library, "sqlite3_column_text", functions.column_text);
  return functions;
}

/// A prepared statement, standing on a row; finalizes itself.
class Statement : public SqliteRow {
 public:
  Statement(const Functions& functions, void* statement)
      : functions_(functions), statement_(statement) {}
  ~Statement() override { functions_.finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  int step() { return functions_.step(statement_); }
  std::optional<std::int64_t> integer(int column) const override {
    if (functions_.column_type(statement_, column) == kNull) return {};
    return functions_.column_int64(statement_, column);
  }
  std::string text(int column) const override {
    const unsigned char* const text = functions_.column_text(statement_, column);
    return text == nullptr ? "" : reinterpret_cast<const char*>(text);
  }

 private:
  const Functions& functions_;
  void* statement_;
};

}  // namespace

struct SqliteDatabase::Connection {
  Functions functions = load_functions();
  std::string path;
  void* database = nullptr;

  [[noreturn]] void refuse() const {
    throw Error(fmt::format("{}: SQLite says: {}", path, functions.errmsg(database)));
  }
};

SqliteDatabase::SqliteDatabase(const std::string& path)
    : connection_(std::make_unique<Connection>()) {
  connection_->path = path;
  void** const database = &connection_->database;
  if (connection_->functions.open_v2(path.c_str(), database, kOpenReadOnly, nullptr) == kOk) return;
  const std::string complaint = connection_->functions.errmsg(*database);
  connection_->functions.close(*database);
  throw Error(fmt::format("{}: SQLite says: {}", path, complaint));
}

SqliteDatabase::~SqliteDatabase() { connection_->functions.close(connection_->database); }

void SqliteDatabase::query(const std::string& sql,
                           const std::function<void(const SqliteRow&)>& visit) const {
  const Functions& functions = connection_->functions;
  void* prepared = nullptr;
  if (functions.prepare_v2(connection_->database, sql.c_str(), -1, &prepared, nullptr) != kOk)
    connection_->refuse();
  Statement statement(functions, prepared);
  int status = kRow;
  while ((status = statement.step()) == kRow) visit(statement);
  if (status != kDone) connection_->refuse();
}

std::vector<std::string> SqliteDatabase::columns(const std::string& table) const {
  std::vector<std::string> names;
  query("PRAGMA table_info('" + table + "')",
        [&](const SqliteRow& row) { names.push_back(row.text(1)); });
  return names;
}

}  // namespace bubblescope
