// What devices really did in a step, as a file: csv or a Chrome trace, by its name.
//
//   rank,op,kind,name,device,stream,start_ns,end_ns,bytes,op_start_ns,op_end_ns,op_covered_ns
//   0,0F0,kernel,norm_kernel<float>,0,13,1200,5300,,1000,90400,85100
//   0,0F0>1,copy,copy,0,17,92000,97100,65536,91000,97500,5100
//
// A line for every kernel, copy and clearing of memory, by its start. Times are those of the step's
// timeline; op_start_ns and op_end_ns are those of the op's two events, and in op_covered_ns of
// what lies between them at least one line of the op was under way.
//
// A Chrome trace (.json, .json.gz) has a process per rank and in it a row per stream, on which the
// ops lie from event to event, and within them what they launched.
#pragma once

#include <string>

#include "exec/gpu/host/gpu_activity.h"
#include "tools/predict.h"

namespace bubblescope {

/// Throws Error, before the work, for a name of neither kind, a folder that is not there, and a
/// backend that has no devices.
void expect_activity(const std::string& path, const std::string& backend);

/// The file's content. The activity is of the step's timeline.
std::string write_activity(const StepActivity& activity, const Step& step, const std::string& path);

}  // namespace bubblescope
