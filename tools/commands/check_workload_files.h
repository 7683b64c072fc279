// check, for workloads of other simulators: GOAL text and Chakra's traces.
//
//   $ bubblescope check step.goal
//   step.goal: goal, 2 ranks, 12 jobs, 4 messages
//     eager            cannot hang
//     rendezvous       cannot hang
#pragma once

#include "tools/command.h"
#include "tools/flags/command_flags.h"

namespace bubblescope::tools {

/// Whether one of these words names a workload's file.
bool names_workload(const Arguments& arguments);

/// Checks them. `of_schedules` are the flags with which `check` looks at schedules: refused here.
int check_workload_files(const Arguments& arguments, const CommandFlags& of_schedules);

}  // namespace bubblescope::tools
