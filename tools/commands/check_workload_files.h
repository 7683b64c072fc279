// check, for workloads of other simulators: GOAL text and Chakra's traces.
//
//   $ bubblescope check step.goal
//   step.goal: goal, 2 ranks, 12 jobs, 4 messages
//     eager            cannot hang
//     rendezvous       cannot hang
#pragma once

#include "tools/command.h"

namespace bubblescope::tools {

/// Whether one of these words names a workload's file.
bool names_workload(const Arguments& arguments);

int check_workload_files(const Arguments& arguments);

}  // namespace bubblescope::tools
