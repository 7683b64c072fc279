// Assembles observed ops into whole steps: which op ran where, in which order, on which message.
#pragma once

#include <vector>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Returns the steps of a trace in order of replica and step. Each is lowered as data flow: its
/// messages are those of the trace where both ends were seen, and take no time otherwise. Where ops
/// of a rank overlap, because clocks are inexact, an op is cut where the next one starts; the notes
/// say how many ops and by how much, and which steps were left out because they lack ops that
/// others have.
/// Throws Error where no step is complete, naming what is missing.
std::vector<MeasuredStep> assemble_steps(ObservedTrace& trace);

}  // namespace bubblescope::traces
