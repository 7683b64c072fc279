// Several files of the same stages are data-parallel replicas of one pipeline.
#pragma once

#include "traces/trace_format.h"

namespace bubblescope {

/// Where recorders do not know their replica, but several ran the same stages, gives the n-th of
/// each, in order of rank, to replica n. Does nothing where no two ran the same.
void separate_replicas(ObservedTrace& trace);

}  // namespace bubblescope
