// From single observed ops to whole steps: which op ran where, after what, on whose message.
#pragma once

#include <vector>

#include "traces/trace_format.h"

namespace bubblescope {

/// The steps of a trace in order of replica and step. Each is lowered as data flow: its messages
/// are those of the trace where both ends of one were seen, and take no time where not. Ops of a
/// rank that overlap, as clocks have it, are cut where the next one starts; the notes tell how many
/// and how much, and which steps were left out because they lack ops that others have.
/// Throws Error where no step is whole, with what it lacks.
std::vector<MeasuredStep> measured_steps(ObservedTrace& trace);

}  // namespace bubblescope
