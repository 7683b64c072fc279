// Writes the causes of long steps (sim/analysis/causes.h), one line for each.
//
// As json, after "stragglers":
//   "causes":[{"cause":"stage","where":"stage 3 (rank 3)","saves_ns":298000000,"share":0.1346},
//   ...],"causes_together_ns":412000000
// "cause" is worker, stage, sequence_lengths, communication, launch, pause, drift, slow_steps,
// variation or late_replica. "share" is the fraction of the whole step that removing the cause
// would save; "causes_together_ns" is what removing all of them at once would, but for those
// outside the pipeline.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/causes.h"
#include "traces/files/cause_words.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// Returns the kind's word in files, such as "stage".
std::string_view cause_code(CauseKind kind);

/// Writes the array, and what they save together. `step` is the mean time of the whole steps.
void write_causes_json(JsonWriter& json, const CauseReport& report, Nanos step);

/// Those that a text shows: the largest five that save 1 % of the step or more.
std::vector<Cause> find_shown_causes(const CauseReport& report, Nanos step);

/// Writes the shown causes in words. Their remark says if no cause saves 1 % of the step, if none
/// is known, or if causes overlap, so that their savings do not add up.
CausesInWords describe_causes(const CauseReport& report, Nanos step, bool has_replicas);

/// The same as lines of a report:
/// cause:    unequal stages: stage 3 (rank 3) has 1.61 x the mean stage's work
///           with equal ones the step would be 298 ms shorter (13.5 %)
std::string write_causes_text(const CauseReport& report, Nanos step, bool has_replicas);

/// Says, in a whole sentence, that long ops are too many to be a cause; nullopt where they are not.
std::optional<std::string> describe_many_long_ops(const CauseReport& report);

}  // namespace bubblescope::traces
