// Sorts the traces of a data-parallel or tensor-parallel job whose files state neither their ranks
// nor their replicas, as those of Nsight Systems.
//
// The *place* of a trace in its pipeline is the stages that it runs or, where ops have no numbers,
// the forwards before its first backward, as in 1F1B. Every place has as many traces. Traces of one
// place that run every op at the same time are tensor-parallel ranks, or replicas in step: the
// first of them is shown. The others belong to the pipeline whose results come before their ops:
// they are sorted only if the times leave one way to do so, whatever the clocks of the files.
#pragma once

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// A trace whose recorders have their ranks, as far as they can be known.
struct RankedTrace {
  ObservedTrace trace;
  bool has_assigned = false;     ///< whether they follow from ops
  bool has_open_chunks = false;  ///< a fault says that the number of chunks per rank is open
};

/// Sets the replica and the rank of every recorder, if several have the same place and none states
/// either. Throws Error, which lists the traces of each place, if times do not tell which of them
/// belong together.
RankedTrace join_pipelines(ObservedTrace trace);

}  // namespace bubblescope::traces
