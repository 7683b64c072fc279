// Runs the program through its command line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/command.h"

namespace bubblescope::tests {

struct CommandOutcome {
  int status = 0;      ///< -1: it did not exit normally
  std::string output;  ///< stdout; or stdout and stderr together
};

/// Runs `bubblescope ARGUMENTS` in a shell.
CommandOutcome run_command(const std::string& arguments);

/// The same, with stderr merged into stdout.
CommandOutcome run_with_messages(const std::string& arguments);

/// Runs one command in this process, without its stderr. Exceptions pass through.
CommandOutcome call_command(int (*command)(const tools::Arguments& arguments),
                            const tools::Arguments& arguments);

/// Runs `bubblescope ARGUMENTS --format json` in a shell, which must exit with `status`, and parses
/// its output.
nlohmann::json read_report(const std::string& arguments, int status = 0);

/// The same for one command in this process, which must succeed.
nlohmann::json read_report(int (*command)(const tools::Arguments& arguments),
                           tools::Arguments arguments);

/// A list of names as a flag takes it: "mlp,layernorm".
std::string join_names(const nlohmann::json& names);

}  // namespace bubblescope::tests
