// Activity of devices in a step, as a file: csv or a Chrome trace, chosen by its name.
//
//   rank,op,kind,name,device,stream,start_ns,end_ns,bytes,op_start_ns,op_end_ns,op_covered_ns
//   0,0F0,kernel,norm_kernel<float>,0,13,1200,5300,,1000,90400,85100
//   0,0F0>1,copy,copy,0,17,92000,97100,65536,91000,97500,5100
//
// One line per kernel, copy and memset, by start. Times are those of the step's timeline;
// op_start_ns and op_end_ns are the op's two events, and op_covered_ns is how much of the time
// between them is covered by lines of the op.
//
// A Chrome trace (.json, .json.gz) has a process per rank with a row per stream. Ops reach from
// event to event and contain what they launched.
#pragma once

#include <string>

#include "exec/gpu/host/gpu_activity.h"
#include "tools/inputs/predict.h"

namespace bubblescope::tools {

/// Throws Error, before the work, for a name of neither kind, a missing folder, and a backend
/// without devices.
void expect_activity(const std::string& path, const std::string& backend);

/// Returns the file's content. `activity` belongs to the step's timeline.
std::string write_activity(const exec::StepActivity& activity, const TimedStep& step,
                           const std::string& path);

}  // namespace bubblescope::tools
