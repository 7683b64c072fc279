// The program, asked through its command line.
#pragma once

#include <string>

#include "tools/command.h"

namespace bubblescope {

struct CommandOutcome {
  int status = 0;      ///< -1: it did not exit by itself
  std::string output;  ///< stdout; or stdout and stderr together
};

/// Runs `bubblescope ARGUMENTS` in a shell.
CommandOutcome run_command(const std::string& arguments);

/// The same with stderr behind stdout.
CommandOutcome run_with_messages(const std::string& arguments);

/// One command within this process, without what it writes to stderr. What it throws is thrown.
CommandOutcome call_command(int (*command)(const Arguments& arguments), const Arguments& arguments);

}  // namespace bubblescope
