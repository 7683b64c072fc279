// The program, asked through its command line.
#pragma once

#include <string>

namespace bubblescope {

struct CommandOutcome {
  int status = 0;      ///< -1: it did not exit by itself
  std::string output;  ///< stdout; or stdout and stderr together
};

/// Runs `bubblescope ARGUMENTS` in a shell.
CommandOutcome run_command(const std::string& arguments);

/// The same with stderr behind stdout.
CommandOutcome run_with_messages(const std::string& arguments);

}  // namespace bubblescope
