// Whole files: reading, writing, compression, and what happens when they are not available.
#include "traces/files/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "sim/ir/error.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/format.h"
#include "traces/files/gzip.h"
#include "traces/timelines/schedule_file.h"

namespace bubblescope::tests {
namespace {

std::string pack(std::string_view content) {
  std::string packed;
  traces::GzipWriter writer([&packed](std::string_view piece) { packed += piece; });
  writer.write(content);
  writer.finish();
  return packed;
}

class Files : public TemporaryFolder {
 protected:
  std::size_t count_files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                                  std::filesystem::directory_iterator()));
  }
};

/// The fault of an Error and its message; kProblem and an empty text where none is thrown.
std::pair<Fault, std::string> failure_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return {error.fault(), error.what()};
  }
  return {Fault::kProblem, ""};
}

// Downloads and copies lose the ending.
TEST_F(Files, AreUnpackedWhateverTheirName) {
  std::ofstream(path("trace.json"), std::ios::binary) << pack("{}");
  EXPECT_EQ(traces::read_file(path("trace.json")), "{}");
}

TEST_F(Files, ComeBackAsTheyWere) {
  const std::string content = std::string("line\r\n\0byte\xff", 12) + std::string(200'000, 'x');
  for (const char* name : {"plain", "packed.gz"}) {
    traces::write_file(path(name), content);
    EXPECT_EQ(traces::read_file(path(name)), content) << name;
  }
  EXPECT_EQ(std::filesystem::file_size(path("plain")), content.size());
  EXPECT_LT(std::filesystem::file_size(path("packed.gz")), 1'000u);
  EXPECT_EQ(count_files(), 2u);  // no temporary file is left
}

TEST_F(Files, CanBeWrittenPieceByPiece) {
  const auto produce = [](const traces::Sink& sink) {
    for (int piece = 0; piece < 300; ++piece)
      sink(std::string(1'000, static_cast<char>('a' + piece % 26)));
    sink("");
  };
  std::string content;
  produce([&content](std::string_view piece) { content += piece; });
  for (const char* name : {"plain", "packed.gz"}) {
    traces::write_file(path(name), produce);
    EXPECT_EQ(traces::read_file(path(name)), content) << name;
  }
  EXPECT_LT(std::filesystem::file_size(path("packed.gz")), 5'000u);
}

TEST_F(Files, AreNotThereWhereTheirContentFails) {
  const auto fail = [](const traces::Sink& sink) {
    sink("half");
    throw Error("no more");
  };
  EXPECT_EQ(failure_of([&] { traces::write_file(path("plain"), fail); }).second, "no more");
  EXPECT_EQ(count_files(), 0u);
}

TEST_F(Files, AreReplacedAndLinksKept) {
  traces::write_file(path("file"), "old");
  std::filesystem::create_symlink("file", path("link"));
  traces::write_file(path("link"), "new");
  EXPECT_EQ(traces::read_file(path("file")), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
}

TEST_F(Files, ThatCannotBeReadSayWhy) {
  EXPECT_EQ(
      failure_of([&] { traces::read_file(path("none")); }),
      (std::pair{Fault::kUsage, "cannot read " + path("none") + ": No such file or directory"}));
  EXPECT_EQ(failure_of([&] { traces::read_file(folder_.string()); }),
            (std::pair{Fault::kUsage, "cannot read " + folder_.string() + ": Is a directory"}));
}

TEST_F(Files, ThatCannotBeCreatedAreBadUsage) {
  EXPECT_EQ(failure_of([&] { traces::write_file(path("none/file"), ""); }),
            (std::pair{Fault::kUsage, "cannot create " + path("none/file") +
                                          ": No such file or directory; make its folder first"}));
  EXPECT_EQ(failure_of([&] { traces::write_file(folder_.string(), ""); }).first, Fault::kUsage);
}

TEST_F(Files, OnAFullDiskAreTheMachinesFault) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  EXPECT_EQ(
      failure_of([] { traces::write_file("/dev/full", "content"); }),
      (std::pair{Fault::kMachine, std::string("cannot write /dev/full: No space left on device")}));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));  // it was not replaced
}

TEST_F(Files, ThatAreDamagedAreRefused) {
  const std::string packed = pack(std::string(1'000, 'x') + "tail");
  const auto read_packed = [&](const std::string& content) {
    std::ofstream(path("f.gz"), std::ios::binary) << content;
    return failure_of([&] { traces::read_file(path("f.gz")); }).second;
  };
  EXPECT_EQ(read_packed(packed), "");
  EXPECT_EQ(read_packed("0F0,0B0"), path("f.gz") + " is not a gzip file; rename it or pack it");
  EXPECT_EQ(read_packed(""), path("f.gz") + " is truncated; copy it again");
  for (std::size_t length = 1; length < packed.size(); ++length)
    EXPECT_EQ(read_packed(packed.substr(0, length)), path("f.gz") + " is truncated; copy it again");
  std::string damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // in the checksum
  EXPECT_EQ(read_packed(damaged), path("f.gz") + " is damaged; create it again");
}

TEST_F(Files, KeepTheirRightsWhenReplaced) {
  namespace fs = std::filesystem;
  traces::write_file(path("file"), "old");
  const auto rights = fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read;
  fs::permissions(path("file"), rights);
  traces::write_file(path("file"), "new");
  EXPECT_EQ(fs::status(path("file")).permissions(), rights);
  EXPECT_EQ(traces::read_file(path("file")), "new");
}

TEST_F(Files, ThatAreReadOnlyAreNotReplaced) {
  traces::write_file(path("file"), "old");
  std::filesystem::permissions(path("file"), std::filesystem::perms::owner_read);
  const auto [fault, message] = failure_of([&] { traces::write_file(path("file"), "new"); });
  EXPECT_EQ(fault, Fault::kUsage);
  EXPECT_NE(message.find("read-only"), std::string::npos) << message;
  EXPECT_EQ(traces::read_file(path("file")), "old");
}

TEST_F(Files, AreMadeWhereALinkLeads) {
  std::filesystem::create_symlink("second", path("first"));
  std::filesystem::create_symlink("file", path("second"));
  traces::write_file(path("first"), "new");
  EXPECT_EQ(traces::read_file(path("file")), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("first")));
  std::filesystem::create_symlink("circle", path("circle"));
  EXPECT_EQ(failure_of([&] { traces::write_file(path("circle"), "new"); }).first, Fault::kUsage);
}

TEST_F(Files, OfAKilledProcessAreSwept) {
  const pid_t child = fork();
  if (child == 0) {
    traces::write_file(path("file"), [](const traces::Sink& sink) {
      sink("half");
      raise(SIGKILL);
    });
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(count_files(), 1u) << "the half file of the killed process";
  traces::write_file(path("other"), "whole");
  EXPECT_EQ(count_files(), 1u);
}

TEST_F(Files, OfALivingProcessAreNotSwept) {
  traces::write_file(path("outer"), [&](const traces::Sink& sink) {
    sink("one ");
    traces::write_file(path("inner"), "whole");
    sink("two");
  });
  EXPECT_EQ(traces::read_file(path("outer")), "one two");
}

TEST_F(Files, ThatAreDevicesOrSilentPipesAreNotRead) {
  EXPECT_NE(failure_of([] { traces::read_file("/dev/zero"); }).second.find("it is a device"),
            std::string::npos);
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_NE(
      failure_of([&] { traces::read_file(path("pipe")); }).second.find("no process writes to it"),
      std::string::npos);
}

TEST_F(Files, ThatUnpackToFarMoreThanTheyAreAreRefused) {
  traces::write_file(path("bomb.gz"), [](const traces::Sink& sink) {
    const std::string blanks(1 << 20, ' ');
    for (int piece = 0; piece < 80; ++piece) sink(blanks);
  });
  const std::string message = failure_of([&] { traces::read_file(path("bomb.gz")); }).second;
  EXPECT_NE(message.find("unpacks to more than 64.0 MiB"), std::string::npos) << message;
  EXPECT_NE(message.find("`max_input`"), std::string::npos) << message;
}

TEST(Gzip, UnpacksSeveralMembers) {
  EXPECT_EQ(traces::gunzip(pack("one ") + pack("two")), "one two");
  EXPECT_EQ(traces::gunzip(pack("")), "");
}

TEST_F(Files, WithSchedulesAreRecognizedByTheirContent) {
  const auto read = [&](const std::string& content) {
    traces::write_file(path("s.gz"), content);
    return traces::read_schedule_file(path("s.gz")).schedule;
  };
  const Schedule schedule = read("0F0 0B0 | 1F0 1B0");
  EXPECT_EQ(schedule.name, "s");
  EXPECT_TRUE(read("0F0,0B0\n1F0,1B0\n") == schedule);
  EXPECT_TRUE(read("# first, a comment\n0F0 0B0 # and, more\n1F0 1B0\n") == schedule);
  for (const char* format : {"native", "pytorch-csv", "text"}) {
    const auto* found = Registry<traces::ScheduleFormat>::instance().find(format);
    EXPECT_TRUE(read(found->write(schedule)) == schedule) << format;
  }
  for (const char* trace :
       {"{\"traceEvents\":[]}", "{\"schemaVersion\":1}", "rank,lane,op,start_ns\n"})
    EXPECT_EQ(failure_of([&] { read(trace); }).second,
              path("s.gz") + " is a trace of a run, with times; 'bubblescope analyze' reads it")
        << trace;
  EXPECT_EQ(failure_of([&] { read("{}"); }).second,
            path("s.gz") + ": must be an object with \"format\":\"bubblescope-schedule/1\"");
  EXPECT_EQ(
      failure_of([&] { read("F0\n"); }).second,
      path("s.gz") + ":1:1: 'F0' does not begin with a stage; write its number first, as in 0F0");
}

}  // namespace
}  // namespace bubblescope::tests
