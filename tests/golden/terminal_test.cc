// No line that the program prints to a terminal of 80 columns is wider.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/support/test_paths.h"
#include "traces/text/wording.h"

namespace bubblescope::tests {
namespace {

/// Returns what `bubblescope ARGUMENTS` writes to a pseudo-terminal; its messages are discarded.
std::string on_terminal(const std::string& arguments, unsigned short columns) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return "";
  const std::string name = ptsname(terminal);
  const int side = open(name.c_str(), O_RDWR | O_NOCTTY);
  const winsize size{24, columns, 0, 0};
  ioctl(side, TIOCSWINSZ, &size);
  const pid_t child = fork();
  if (child == 0) {
    dup2(side, STDOUT_FILENO);
    close(terminal);
    const std::string command = program_path() + " " + arguments + " 2>/dev/null";
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  close(side);
  std::string text;
  char buffer[4096];
  for (ssize_t count = 0; (count = read(terminal, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(count));
  close(terminal);
  waitpid(child, nullptr, 0);
  std::erase(text, '\r');
  return text;
}

class Terminal : public testing::TestWithParam<const char*> {};

TEST_P(Terminal, OfEightyColumnsHoldsEveryLine) {
  const std::string text = on_terminal(GetParam(), 80);
  if (text.empty()) GTEST_SKIP() << "no pseudo-terminal here";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(traces::measure_columns(line), 80) << line;
}

INSTANTIATE_TEST_SUITE_P(
    Commands, Terminal,
    testing::Values(
        "simulate 1f1b --pp 8 -m 64 --model llama3-70b --gpu h100 --tp 8",
        "simulate 1f1b --pp 4 -m 8 --f 10 --i 10 --w 9 --p2p 0.4 --jitter 0.05 --sensitivity",
        "plan --model llama3-70b --gpus 128 --global-batch-size 1024 --pp 4,8 --tp 4,8 "
        "--schedules 1f1b,interleaved,zb-h1",
        "plan --model deepseek-v3 --gpu h800 --gpus 256 --global-batch-size 1024 --pp 8 --tp 1 "
        "--schedules 1f1b,dualpipe --micro-batch-size 1",
        "plan --pp 4,8 -m 16,32 --p2p 0.4 --cap 8",
        "compare gpipe,1f1b,zb-h1 --pp 8 -m 64 --model llama3-70b --tp 8",
        "search --pp 4 -m 8 --f 10 --i 10 --w 9 --p2p 0.4 --cap 3"));

TEST(Terminal, OfAnyWidthShowsAllWithWide) {
  const std::string plan =
      "plan --model llama3-70b --gpus 128 --global-batch-size 1024 --pp 8 --tp 8 --schedules "
      "1f1b,interleaved";
  const std::string narrow = on_terminal(plan, 80);
  if (narrow.empty()) GTEST_SKIP() << "no pseudo-terminal here";
  EXPECT_NE(narrow.find("not shown: "), std::string::npos);
  const std::string wide = on_terminal(plan + " --wide", 80);
  EXPECT_EQ(wide.find("not shown: "), std::string::npos);
  EXPECT_NE(wide.find("recompute"), std::string::npos);
}

// Backgrounds show kind and chunk; for micro-batches 0 and 1 they are the same.
TEST(Terminal, ColoursMeanOneThing) {
  const std::string text = on_terminal("simulate 1f1b --pp 2 -m 4", 80);
  if (text.empty()) GTEST_SKIP() << "no pseudo-terminal here";
  EXPECT_NE(text.find("48;5;26"), std::string::npos);
  EXPECT_EQ(text.find("48;5;32"), std::string::npos);
}

}  // namespace
}  // namespace bubblescope::tests
