// Command lines as a shell takes them, for files and messages that name the command behind them.
#pragma once

#include <string>

#include "tools/command.h"

namespace bubblescope::tools {

/// Returns the line as a shell would take it, quoted where necessary: "bubblescope simulate 1f1b
/// --pp 4".
std::string format_command_line(const std::string& command, const Arguments& arguments);

/// Returns the line that starts this process again as it was started: its program by the name or
/// path that was given, and with the flags of all commands. The same as format_command_line() where
/// the process is another program.
std::string format_own_command_line(const std::string& command, const Arguments& arguments);

}  // namespace bubblescope::tools
