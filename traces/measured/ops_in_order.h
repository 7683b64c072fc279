// The compute ops of recorders, in their order.
#pragma once

#include <vector>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Ops of a trace, which outlives this.
using OpsInOrder = std::vector<const ObservedOp*>;

void sort_by_start(OpsInOrder& ops);

/// Returns for each recorder its compute ops, sorted by start.
std::vector<OpsInOrder> computes_by_recorder(const ObservedTrace& trace);

}  // namespace bubblescope::traces
