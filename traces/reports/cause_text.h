// Writes the causes of long steps (sim/analysis/causes.h), one line for each.
//
// As json, after "stragglers":
//   "causes":[{"cause":"stage","where":"stage 3 (rank 3)","saves_ns":298000000,"share":0.1346},
//   ...]
// "cause" is worker, stage or sequence_lengths. "share" is the fraction of the whole step that
// removing the cause would save.
#pragma once

#include <string>

#include "sim/analysis/causes.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// Writes the array, or null. `step` is the mean time of the whole steps.
void write_causes_json(JsonWriter& json, const CauseReport& report, Nanos step);

/// cause:    unequal stages: stage 3 (rank 3) has 1.61 x the mean stage's work
///           with equal ones the step would be 298 ms shorter (13.5 %)
///
/// Causes that would save less than 1 % of the step are left out. If none is left, a line says so.
std::string write_causes_text(const CauseReport& report, Nanos step, bool has_replicas);

}  // namespace bubblescope::traces
