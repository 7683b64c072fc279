// A file must be on disk before it replaces another. The test replaces the C library's fsync and
// rename with functions that record their calls; fsync fails on request.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace {

/// A recorded call: the file, and its length at that time.
struct FileCall {
  std::string name;
  ino_t file = 0;
  off_t size = 0;
};

std::vector<FileCall> file_calls;
bool fails_to_sync = false;

}  // namespace

extern "C" int fsync(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) == 0)
    file_calls.push_back({"fsync", status.st_ino, status.st_size});
  if (!fails_to_sync) return static_cast<int>(::syscall(SYS_fsync, descriptor));
  errno = EIO;
  return -1;
}

extern "C" int rename(const char* from, const char* to) noexcept {
  struct stat status {};
  if (::stat(from, &status) == 0) file_calls.push_back({"rename", status.st_ino, status.st_size});
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace bubblescope::tests {
namespace {

class FileSync : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    file_calls.clear();
  }
  void TearDown() override {
    fails_to_sync = false;
    TemporaryFolder::TearDown();
  }

  std::string content_of(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(FileSync, AWholeFileIsSyncedBeforeItTakesTheName) {
  std::ofstream(path("report.json")) << "old";
  const std::string content(100'000, 'x');
  traces::write_file(path("report.json"), content);
  ASSERT_EQ(file_calls.size(), 2u);
  EXPECT_EQ(file_calls[0].name, "fsync");
  EXPECT_EQ(file_calls[1].name, "rename");
  EXPECT_EQ(file_calls[0].file, file_calls[1].file);
  EXPECT_EQ(file_calls[0].size, static_cast<off_t>(content.size()));
  EXPECT_EQ(content_of("report.json"), content);
}

TEST_F(FileSync, AFileThatCannotBeSyncedReplacesNothing) {
  std::ofstream(path("report.json")) << "old";
  fails_to_sync = true;
  EXPECT_EQ(error_of([&] { traces::write_file(path("report.json"), "new"); }),
            "cannot write " + path("report.json") + ": Input/output error");
  EXPECT_EQ(content_of("report.json"), "old");
  EXPECT_EQ(file_calls.size(), 1u);
  const auto left = std::distance(std::filesystem::directory_iterator(folder_), {});
  EXPECT_EQ(left, 1) << "a temporary file was left";
}

}  // namespace
}  // namespace bubblescope::tests
