// Recognizes data-parallel replicas of one pipeline: several files with the same stages.
#pragma once

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Where recorders do not state their replica but several ran the same stages, assigns the n-th of
/// each, in order of rank, to replica n. Of those that run every op at the same time, the first is
/// kept. Does nothing where no two ran the same stages.
ObservedTrace separate_replicas(ObservedTrace trace);

/// Counts replicas that are known by their first rank in the job: by the places of their ranks in
/// data-parallel groups where these distinguish them, else from 0 in that order.
ObservedTrace number_replicas(ObservedTrace trace);

}  // namespace bubblescope::traces
