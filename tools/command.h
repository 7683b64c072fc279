// Commands: one file each, one row each in the table of commands.cc.
#pragma once

#include <string>
#include <vector>

namespace bubblescope::tools {

/// The words after the command's name.
using Arguments = std::vector<std::string>;

struct Command {
  std::string name;
  std::string summary;                     ///< one line for `bubblescope --help`
  int (*run)(const Arguments& arguments);  ///< returns the exit status; throws Error
};

/// Returns all commands in the order of the help. Defined in commands.cc.
const std::vector<Command>& commands();

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
