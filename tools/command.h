// Commands: one file each, one row each in the table of commands.cc.
#pragma once

#include <string>
#include <vector>

#include "sim/ir/error.h"

namespace bubblescope::tools {

/// The words after the command's name.
using Arguments = std::vector<std::string>;

struct Command {
  std::string name;
  std::string summary;                     ///< one line for `bubblescope --help`
  int (*run)(const Arguments& arguments);  ///< returns the exit status; throws Error
};

/// All commands in the order of the help. Defined in commands.cc.
const std::vector<Command>& commands();

/// Returns the exit status for an Error.
int exit_status(Fault fault);

/// Returns the line as a shell would take it, quoted where necessary: "bubblescope simulate 1f1b
/// --pp 4".
std::string format_command_line(const std::string& command, const Arguments& arguments);

/// Returns the line that starts this process again as it was started: its program by the name or
/// path that was given, and with the flags of all commands. The same as format_command_line() where
/// the process is another program.
std::string format_own_command_line(const std::string& command, const Arguments& arguments);

/// Prints "bubblescope: ..." to stderr. Never throws, even if stderr cannot be written.
void print_error(const std::string& message);

int run_list(const Arguments& arguments);
int run_simulate(const Arguments& arguments);
int run_run(const Arguments& arguments);
int run_calibrate(const Arguments& arguments);
int run_compare(const Arguments& arguments);
int run_plan(const Arguments& arguments);
int run_check(const Arguments& arguments);
int run_convert(const Arguments& arguments);
int run_search(const Arguments& arguments);
int run_partition(const Arguments& arguments);
int run_analyze(const Arguments& arguments);
int run_diff(const Arguments& arguments);
int run_completion(const Arguments& arguments);

}  // namespace bubblescope::tools
