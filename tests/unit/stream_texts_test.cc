// Texts of streams are read once, looked at by some, and taken by the last.
#include "tools/commands/stream_texts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <thread>

#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

class StreamTextsOfPaths : public TemporaryFolder {};

TEST_F(StreamTextsOfPaths, AreGoneOnceTheyAreTaken) {
  const std::string pipe = path("pipe");
  const std::string file = path("file");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  traces::write_file(file, "read by others");
  std::jthread writer([&] { std::ofstream(pipe) << "the text"; });
  tools::StreamTexts streams({pipe, file});
  EXPECT_EQ(streams.find(pipe), "the text");
  EXPECT_EQ(streams.take(pipe), "the text");
  EXPECT_EQ(streams.find(pipe), "");
  EXPECT_FALSE(streams.take(file).has_value());
}

}  // namespace
}  // namespace bubblescope::tests
