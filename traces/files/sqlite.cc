// Loads the few functions of libsqlite3 that reading needs, by name.
#include "traces/files/sqlite.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <system_error>

#include "sim/ir/error.h"
#include "traces/files/library.h"

namespace bubblescope::traces {

namespace {

// Values of sqlite3.h, whose interface is stable.
constexpr int kOk = 0;
constexpr int kRow = 100;
constexpr int kDone = 101;
constexpr int kInterrupted = 9;
constexpr int kOpenReadOnly = 0x01;
constexpr int kOpenUri = 0x40;
constexpr int kNull = 5;

/// The limits of sqlite3_limit, by their numbers there.
struct Limit {
  int number;
  int max_value;
};
constexpr int kMaxValueBytes = 1 << 20;
constexpr std::array<Limit, 9> kLimits{{{0, kMaxValueBytes},  // bytes of a text or a blob
                                        {1, 1 << 20},         // bytes of a statement
                                        {2, 2'000},           // columns
                                        {3, 100},             // depth of an expression
                                        {4, 5},               // parts of a compound select
                                        {5, 100'000},         // steps of a program
                                        {6, 10},              // arguments of a function
                                        {7, 0},               // attached databases
                                        {10, 0}}};            // depth of triggers

/// The number of virtual machine steps between two checks, and the allowance per byte: a row of the
/// smallest kind takes six bytes of a file and some twenty steps.
constexpr int kStepsPerCheck = 10'000;
constexpr std::int64_t kAlwaysSteps = 20'000'000;
constexpr std::int64_t kStepsPerByte = 20;

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
  int (*limit)(void*, int, int) = nullptr;
  void (*progress_handler)(void*, int, int (*)(void*), void*) = nullptr;
};

template <class Function>
void load(const LoadedLibrary& library, const char* name, Function*& function) {
  if (!find_function(library, name, function))
    throw Error(Fault::kMachine, fmt::format("libsqlite3 has no {}; install a newer one", name));
}

/// The library stays loaded until the program ends.
Functions load_functions() {
  const LoadedLibrary library = load_library({"libsqlite3.so.0", "libsqlite3.dylib"});
  if (library.handle == nullptr)
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
  load(library, "sqlite3_limit", functions.limit);
  load(library, "sqlite3_progress_handler", functions.progress_handler);
  return functions;
}

/// A prepared statement at its current row; finalizes itself.
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

/// Writes a path as an SQLite URI. "immutable" keeps SQLite from creating files beside the
/// database.
std::string uri_of(const std::string& path) {
  std::string uri = path.starts_with('/') ? "file://" : "file:";
  for (const char letter : path) {
    const bool is_special = letter == '?' || letter == '#' || letter == '%';
    uri += is_special ? fmt::format("%{:02x}", static_cast<unsigned char>(letter))
                      : std::string(1, letter);
  }
  return uri + "?mode=ro&immutable=1";
}

std::int64_t find_max_steps(const std::string& path) {
  std::error_code ignored;
  const auto size = std::filesystem::file_size(path, ignored);
  if (ignored) return kAlwaysSteps;
  return kAlwaysSteps + kStepsPerByte * static_cast<std::int64_t>(size);
}

}  // namespace

struct SqliteDatabase::Connection {
  Functions functions = load_functions();
  std::string path;
  void* database = nullptr;
  std::int64_t steps_left = 0;

  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { functions.close(database); }

  static int count_steps(void* connection) {
    std::int64_t& left = static_cast<Connection*>(connection)->steps_left;
    left -= kStepsPerCheck;
    return left < 0 ? 1 : 0;
  }

  [[noreturn]] void refuse(int status) const {
    if (status == kInterrupted)
      throw Error(path +
                  ": reading takes more steps than a file of its size can need; export the "
                  "trace again");
    throw Error(fmt::format("{}: SQLite reports: {}", path, functions.errmsg(database)));
  }
};

SqliteDatabase::SqliteDatabase(const std::string& path)
    : connection_(std::make_unique<Connection>()) {
  Connection& own = *connection_;
  own.path = path;
  own.steps_left = find_max_steps(path);
  const int flags = kOpenReadOnly | kOpenUri;
  if (own.functions.open_v2(uri_of(path).c_str(), &own.database, flags, nullptr) != kOk) {
    throw Error(fmt::format("{}: SQLite reports: {}", path, own.functions.errmsg(own.database)));
  }
  for (const Limit& limit : kLimits)
    own.functions.limit(own.database, limit.number, limit.max_value);
  own.functions.progress_handler(own.database, kStepsPerCheck, &Connection::count_steps, &own);
  // Only what reading tables needs is run from the schema, and nothing is written to disk.
  for (const char* setting : {"trusted_schema = OFF", "temp_store = MEMORY", "mmap_size = 0",
                              "cell_size_check = ON", "cache_size = -65536"})
    query(std::string("PRAGMA ") + setting, [](const SqliteRow&) {});
}

SqliteDatabase::~SqliteDatabase() = default;

void SqliteDatabase::query(const std::string& sql,
                           const std::function<void(const SqliteRow&)>& visit) const {
  const Functions& functions = connection_->functions;
  void* prepared = nullptr;
  const int fault =
      functions.prepare_v2(connection_->database, sql.c_str(), -1, &prepared, nullptr);
  if (fault != kOk) connection_->refuse(fault);
  Statement statement(functions, prepared);
  int status = kRow;
  while ((status = statement.step()) == kRow) visit(statement);
  if (status != kDone) connection_->refuse(status);
}

bool SqliteDatabase::is_table(const std::string& name) const {
  bool found = false;
  query(
      "SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = '" + name + "'",
      [&found](const SqliteRow&) { found = true; });
  return found;
}

std::vector<std::string> SqliteDatabase::columns(const std::string& table) const {
  std::vector<std::string> names;
  if (!is_table(table)) return names;
  query("PRAGMA table_info('" + table + "')",
        [&](const SqliteRow& row) { names.push_back(row.text(1)); });
  return names;
}

}  // namespace bubblescope::traces
