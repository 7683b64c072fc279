// Finds the pipelines of a job with several, whose process groups have no names that tell them
// (DeepSpeed's are all "undefined"), so that ranks count through the whole job.
//
// A pipeline is a set of ranks that exchange messages with each other only or, where messages do
// not state their ranks, a process group whose lowest rank receives nothing before its forwards,
// whose highest receives nothing before its backwards, and whose others receive before both:
//
//   groups [0, 1], [0, 2], [1, 3], [2, 3]    ranks 0 and 1 send first, ranks 2 and 3 send last
//   pipelines      [0, 2], [1, 3]
#pragma once

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Places every recorder in its pipeline. Does nothing where files state their replicas, where ops
/// state their stages, or where the ranks may be those of one pipeline. Throws Error where they
/// run several pipelines, by their messages, but nothing says which ranks are one.
ObservedTrace place_in_unnamed_pipelines(ObservedTrace trace);

}  // namespace bubblescope::traces
