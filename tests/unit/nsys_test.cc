// Nsight Systems' databases, created here with the tables that it exports.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

/// A database file that is deleted when the test ends; empty where there is no libsqlite3.
class Database {
 public:
  explicit Database(const std::string& sql)
      : path_((std::filesystem::temp_directory_path() /
               (std::to_string(getpid()) + "-nsys-test.sqlite"))
                  .string()) {
    std::filesystem::remove(path_);
    void* const library = dlopen("libsqlite3.so.0", RTLD_NOW);
    if (library == nullptr) return;
    const auto open =
        reinterpret_cast<int (*)(const char*, void**)>(dlsym(library, "sqlite3_open"));
    const auto run = reinterpret_cast<int (*)(void*, const char*, void*, void*, char**)>(
        dlsym(library, "sqlite3_exec"));
    const auto close = reinterpret_cast<int (*)(void*)>(dlsym(library, "sqlite3_close"));
    void* database = nullptr;
    made_ = open(path_.c_str(), &database) == 0 &&
            run(database, sql.c_str(), nullptr, nullptr, nullptr) == 0;
    close(database);
  }
  ~Database() { std::filesystem::remove(path_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& path() const { return path_; }
  bool made() const { return made_; }

 private:
  std::string path_;
  bool made_ = false;
};

constexpr std::int64_t kFirstRank = std::int64_t{7} << 24;
constexpr std::int64_t kSecondRank = std::int64_t{8} << 24;

std::string range(std::int64_t process, int start, int end, const std::string& name) {
  return "INSERT INTO NVTX_EVENTS VALUES(" + std::to_string(start) + "," + std::to_string(end) +
         "," + name + ",59," + std::to_string(process + 1) + ");";  // 59: push and pop
}

std::string launch(std::int64_t process, int call, int correlation, int start, int end) {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(" + std::to_string(call) + "," +
         std::to_string(call + 1) + "," + std::to_string(correlation) + "," +
         std::to_string(process + 1) + ");INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(" +
         std::to_string(start) + "," + std::to_string(end) + "," + std::to_string(correlation) +
         "," + std::to_string(process) + ");";
}

const std::string kTables =
    "CREATE TABLE StringIds(id INTEGER, value TEXT);"
    "INSERT INTO StringIds VALUES(4,'PP:1B0');"
    "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, text TEXT, textId INTEGER, "
    "eventType INTEGER, globalTid INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, correlationId INTEGER, "
    "globalTid INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, correlationId INTEGER, "
    "globalPid INTEGER);";

TEST(Nsys, OpsRunFromTheFirstToTheLastOfTheirKernels) {
  // Both processes use the same correlation ids, as real ones do.
  const Database database(
      kTables + range(kFirstRank, 100, 110, "'PP:0F0',NULL") +
      launch(kFirstRank, 101, 1, 200, 220) + launch(kFirstRank, 105, 2, 225, 240) +
      range(kSecondRank, 100, 112, "'PP:1F0',NULL") + launch(kSecondRank, 102, 1, 250, 290) +
      range(kSecondRank, 120, 125, "NULL,4") + launch(kSecondRank, 121, 2, 290, 350) +
      range(kFirstRank, 120, 121, "'data loading',NULL") +
      range(kFirstRank, 130, 135, "'PP:0B0',NULL") + launch(kFirstRank, 131, 3, 360, 400));
  if (!database.made()) GTEST_SKIP() << "there is no libsqlite3";
  const traces::AssembledSteps read = traces::assemble_steps(traces::read_trace(database.path()));
  ASSERT_EQ(read.steps.size(), 1u);
  const traces::MeasuredStep& step = read.steps[0];
  EXPECT_EQ(step.timeline.source, "nsys");
  EXPECT_EQ(step.schedule->order[0], (RankOrder{forward(0, 0), backward(0, 0)}));
  EXPECT_EQ(step.schedule->order[1], (RankOrder{forward(1, 0), backward(1, 0)}));
  EXPECT_EQ(step.timeline.start[0], 0);
  EXPECT_EQ(step.timeline.end[0], 40);
  EXPECT_TRUE(read.remarks.notes.empty());
}

TEST(Nsys, RefusesDatabasesOfOthers) {
  const Database database("CREATE TABLE something(else_ INTEGER);");
  if (!database.made()) GTEST_SKIP() << "there is no libsqlite3";
  EXPECT_TRUE(fails_with([&] { traces::read_trace(database.path()); },
                         "no NVTX range that names a pipeline op"));
}

void expect_refused(const Database& database, const std::string& part) {
  EXPECT_TRUE(fails_with([&] { traces::read_trace(database.path()); }, part));
}

TEST(Nsys, RunsNothingThatADatabaseSays) {
  const Database view(
      "CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 "
      "FROM n) SELECT start, start AS end, 'PP:0F0' AS text, 1 AS globalTid FROM n;");
  if (!view.made()) GTEST_SKIP() << "there is no libsqlite3";
  expect_refused(view, "no NVTX range that names a pipeline op");
}

TEST(Nsys, RefusesTimesThatNoRecordingHas) {
  const Database database(kTables +
                          "INSERT INTO NVTX_EVENTS VALUES(-9223372036854775807, "
                          "9223372036854775807, 'PP:0F0', NULL, 59, 1);");
  if (!database.made()) GTEST_SKIP() << "there is no libsqlite3";
  expect_refused(database, "out of range");
}

TEST(Nsys, RefusesValuesThatNoNameHas) {
  const Database database(kTables + range(kFirstRank, 1, 2, "hex(zeroblob(10000000)),NULL"));
  if (!database.made()) GTEST_SKIP() << "there is no libsqlite3";
  expect_refused(database, "too big");
}

TEST(Nsys, DoesNotSearchAllNamesForEveryRange) {
  // The file has no index: a join would take more steps than are allowed.
  const Database database(
      kTables +
      "INSERT INTO StringIds WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT "
      "i + 1 FROM n WHERE i < 30000) SELECT i, 'x' FROM n;"
      "INSERT INTO NVTX_EVENTS SELECT id, id + 1, NULL, 5, 59, 1 FROM StringIds;");
  if (!database.made()) GTEST_SKIP() << "there is no libsqlite3";
  expect_refused(database, "no NVTX range that names a pipeline op");
}

}  // namespace
}  // namespace bubblescope::tests
