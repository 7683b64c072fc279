// Our own schedule file: json with everything a Schedule says, "bubblescope-schedule/1".
//
//   {"format":"bubblescope-schedule/1",
//    "name":"1f1b",
//    "shape":{"ranks":2,"chunks":1,"microbatches":2,"slices":1},
//    "pipelines":1,
//    "forward_only":false,
//    "placement":[0,1],
//    "order":["0F0 0F1 0B0 0B1",
//             "1F0 1B0 1F1 1B1"]}
//
// placement has the rank of every stage; order has one string per rank, in the text form's words.
// Optional keys:
//   "fused_forwards":2             how many forwards of a stage run as one
//   "replicas":[2,1]               ranks that share each stage, from its placement on
//   "weights":["0 0 0>1 1>2",...]  per compute op, the weight version that it reads and, after >,
//                                  the one that it writes
//   "side_stages":2                the last stages of the placement, beside the chain
//   "inputs":[[],[],[0,1]]         the stage graph: which stages each one reads; else a chain
//   "after":["1F1 after 0B0 2F0"]  1F1 also waits for the ends of 0B0 and 2F0
#pragma once

#include <string>
#include <string_view>

#include "sim/ir/schedule.h"

namespace bubblescope::traces {

/// Throws Error with the JSON pointer of the first fault: "s.json: /order/2: '0F' has no
/// micro-batch; ...". validate() decides whether the schedule is legal.
Schedule read_native_schedule(std::string_view text, const std::string& file);

std::string write_native_schedule(const Schedule& schedule);

}  // namespace bubblescope::traces
