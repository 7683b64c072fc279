// Writes the databases of Nsight Systems by libsqlite3, which is loaded where there is one.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <type_traits>

#include "tests/support/nsys_writer.h"

namespace bubblescope::tests {

namespace {

constexpr Nanos kCallLength = 1'000;

constexpr const char* kTables2021 =
    "CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, "
    "globalTid INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, eventClass INTEGER, "
    "globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, "
    "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName "
    "INTEGER);";

constexpr const char* kMore2023 =
    "ALTER TABLE NVTX_EVENTS ADD COLUMN textId INTEGER;"
    "ALTER TABLE NVTX_EVENTS ADD COLUMN rangeId INTEGER;"
    "ALTER TABLE NVTX_EVENTS ADD COLUMN category INTEGER;"
    "ALTER TABLE NVTX_EVENTS ADD COLUMN domainId INTEGER;"
    "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN graphNodeId INTEGER;";

/// The functions of libsqlite3; all null where there is none.
struct Sqlite {
  Sqlite() {
    void* const library = dlopen("libsqlite3.so.0", RTLD_NOW);
    if (library == nullptr) return;
    const auto load = [library](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    load(open, "sqlite3_open");
    load(run, "sqlite3_exec");
    load(close, "sqlite3_close");
    load(prepare, "sqlite3_prepare_v2");
    load(bind_integer, "sqlite3_bind_int64");
    load(bind_text, "sqlite3_bind_text");
    load(step, "sqlite3_step");
    load(reset, "sqlite3_reset");
    load(finalize, "sqlite3_finalize");
  }

  int (*open)(const char*, void**) = nullptr;
  int (*run)(void*, const char*, void*, void*, char**) = nullptr;
  int (*close)(void*) = nullptr;
  int (*prepare)(void*, const char*, int, void**, const char**) = nullptr;
  int (*bind_integer)(void*, int, std::int64_t) = nullptr;
  int (*bind_text)(void*, int, const char*, int, void (*)(void*)) = nullptr;
  int (*step)(void*) = nullptr;
  int (*reset)(void*) = nullptr;
  int (*finalize)(void*) = nullptr;
};

const Sqlite& sqlite() {
  static const Sqlite library;
  return library;
}

/// A new database in one transaction; is_sound() is false once anything has failed.
class Database {
 public:
  explicit Database(const std::string& path) {
    std::filesystem::remove(path);
    is_sound_ = sqlite().open != nullptr && sqlite().open(path.c_str(), &database_) == 0;
    run("PRAGMA synchronous=OFF;BEGIN;");
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() {
    if (database_ != nullptr) sqlite().close(database_);
  }

  void run(const std::string& sql) {
    if (is_sound_) is_sound_ = sqlite().run(database_, sql.c_str(), nullptr, nullptr, nullptr) == 0;
  }
  void* prepare(const std::string& sql) {
    void* statement = nullptr;
    if (is_sound_)
      is_sound_ = sqlite().prepare(database_, sql.c_str(), -1, &statement, nullptr) == 0;
    return statement;
  }
  /// Notes that a row could not be inserted.
  void spoil() { is_sound_ = false; }
  bool commit() {
    run("COMMIT;");
    return is_sound_;
  }

 private:
  void* database_ = nullptr;
  bool is_sound_ = false;
};

/// Inserts rows. sqlite parses the statement once for all of them.
class Rows {
 public:
  Rows(Database& database, const std::string& into, std::size_t columns) : database_(database) {
    std::string values = "?";
    for (std::size_t column = 1; column < columns; ++column) values += ",?";
    statement_ = database.prepare("INSERT INTO " + into + " VALUES(" + values + ")");
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows() {
    if (statement_ != nullptr) sqlite().finalize(statement_);
  }

  template <class... Values>
  void add(const Values&... values) {
    if (statement_ == nullptr) return;
    int column = 0;
    (bind(++column, values), ...);
    constexpr int kDone = 101;  // SQLITE_DONE
    if (sqlite().step(statement_) != kDone) database_.spoil();
    sqlite().reset(statement_);
  }

 private:
  void bind(int column, std::int64_t value) { sqlite().bind_integer(statement_, column, value); }
  void bind(int column, const std::string& text) {
    sqlite().bind_text(statement_, column, text.c_str(), -1, nullptr);  // it outlives the step
  }

  Database& database_;
  void* statement_ = nullptr;
};

/// Numbers the texts of a database.
class Strings {
 public:
  std::int64_t operator()(const std::string& text) {
    return numbers_.emplace(text, std::ssize(numbers_) + 1).first->second;
  }
  void write(Database& database) const {
    Rows rows(database, "StringIds", 2);
    for (const auto& [text, number] : numbers_) rows.add(number, text);
  }

 private:
  std::map<std::string, std::int64_t> numbers_;
};

void write_ranges(Database& database, const NsysEvents& events, bool has_ids, Strings& strings) {
  Rows rows(
      database,
      fmt::format("NVTX_EVENTS(start,end,eventType,{},globalTid)", has_ids ? "textId" : "text"), 5);
  constexpr std::int64_t kPushPop = 59;
  for (const NsysEvents::Range& range : events.ranges)
    if (has_ids)
      rows.add(range.start, range.end, kPushPop, strings(range.name), range.thread);
    else
      rows.add(range.start, range.end, kPushPop, range.name, range.thread);
}

void write_calls(Database& database, const NsysEvents& events, Strings& strings) {
  Rows rows(database, "CUPTI_ACTIVITY_KIND_RUNTIME", 7);
  for (const NsysEvents::Call& call : events.calls)
    rows.add(call.start, call.start + kCallLength, 0, call.thread, call.correlation,
             strings("cudaLaunchKernel_v7000"), 0);
}

void write_kernels(Database& database, const NsysEvents& events, Strings& strings) {
  Rows rows(database,
            "CUPTI_ACTIVITY_KIND_KERNEL(start,end,deviceId,streamId,correlationId,globalPid,"
            "demangledName,shortName)",
            8);
  for (const NsysEvents::Kernel& kernel : events.kernels)
    rows.add(kernel.start, kernel.end, 0, kernel.stream, kernel.correlation, kernel.process,
             strings(kernel.name), strings(kernel.name));
}

}  // namespace

bool write_nsys(const std::string& path, const NsysEvents& events, NsysSchema schema,
                std::int64_t epoch) {
  Database database(path);
  const bool has_ids = schema != NsysSchema::k2021;
  database.run(kTables2021);
  if (has_ids) database.run(kMore2023);
  Strings strings;
  write_ranges(database, events, has_ids, strings);
  write_calls(database, events, strings);
  write_kernels(database, events, strings);
  strings.write(database);
  if (schema == NsysSchema::k2025)
    database.run(fmt::format(
        "CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER, utcTime TEXT, localTime "
        "TEXT);INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES({},'','');",
        epoch));
  return database.commit();
}

bool write_database(const std::string& path, const std::string& sql) {
  Database database(path);
  database.run(sql);
  return database.commit();
}

}  // namespace bubblescope::tests
