// Reads the program's output through a pipe.
#include "tests/support/command.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/support/test_paths.h"

namespace bubblescope::tests {

namespace {

CommandOutcome run_in_shell(const std::string& command) {
  CommandOutcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {-1, "no pipe"};
  std::array<char, 4096> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), count);
  const int ended = pclose(pipe);
  outcome.status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
  return outcome;
}

}  // namespace

CommandOutcome run_command(const std::string& arguments) {
  return run_in_shell(program_path() + " " + arguments);
}

CommandOutcome run_with_messages(const std::string& arguments) {
  return run_in_shell("(" + program_path() + " " + arguments + ") 2>&1");
}

CommandOutcome call_command(int (*command)(const tools::Arguments& arguments),
                            const tools::Arguments& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto take_output = [] {
    std::fflush(stdout);
    testing::internal::GetCapturedStderr();
    return testing::internal::GetCapturedStdout();
  };
  CommandOutcome outcome;
  try {
    outcome.status = command(arguments);
  } catch (...) {
    take_output();
    throw;
  }
  outcome.output = take_output();
  return outcome;
}

nlohmann::json read_report(const std::string& arguments, int status) {
  const CommandOutcome outcome = run_command(arguments + " --format json 2>/dev/null");
  EXPECT_EQ(outcome.status, status) << arguments;
  return nlohmann::json::parse(outcome.output);
}

nlohmann::json read_report(int (*command)(const tools::Arguments& arguments),
                           tools::Arguments arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  const CommandOutcome outcome = call_command(command, arguments);
  EXPECT_EQ(outcome.status, 0) << arguments.front();
  return nlohmann::json::parse(outcome.output);
}

std::string join_names(const nlohmann::json& names) {
  std::string text;
  for (const nlohmann::json& name : names)
    text += (text.empty() ? "" : ",") + name.get<std::string>();
  return text;
}

}  // namespace bubblescope::tests
