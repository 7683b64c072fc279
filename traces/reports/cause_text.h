// Why steps take as long as they do, in one line per cause.
//
// As json, after "stragglers":
//   "causes":[{"cause":"stage","where":"stage 3 (rank 3)","saves_ns":298000000,"share":0.1346},
//   ...]
// "cause" is worker, stage or sequence_lengths; "share" is the part of the whole
// step that mending it would save.
#pragma once

#include <string>

#include "sim/analysis/causes.h"

namespace bubblescope::traces {

/// The array. `step` is the mean of the whole steps.
std::string write_causes_json(const CauseReport& report, Nanos step);

/// cause:    unequal stages: stage 3 (rank 3) has 1.61 x the mean stage's work
///           with equal ones the step would be 298 ms shorter (13.5 %)
///
/// Causes that would save under 1 % of the step are left out; that there is none is said.
std::string write_causes_text(const CauseReport& report, Nanos step, bool has_replicas);

}  // namespace bubblescope::traces
