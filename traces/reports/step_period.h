// How often steps begin, where ranks do not wait for each other between them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// From step to step of one replica. A rank that has run its ops may begin the next step while
/// others still run theirs: then the extents of steps overlap, and hold more idle time than passes.
struct StepPeriod {
  Nanos mean = 0;     ///< half the time between starts and half that between ends
  Nanos overlap = 0;  ///< of a step with the next one, in the mean; 0 where they are apart
  std::optional<double> idle = {};  ///< the part of the period in which a rank runs no op, if known
};

/// Returns the period of steps that follow each other in the recording; empty if no two do.
std::optional<StepPeriod> measure_step_period(const std::vector<MeasuredStep>& steps);

/// Whether steps overlap by more than clocks and rounding explain.
bool do_steps_overlap(const std::optional<StepPeriod>& period);

/// period       2.121 s  from step to step: steps overlap by 122 ms, ... Empty where they do not.
std::string write_step_period_text(const std::optional<StepPeriod>& period);

/// {"ns":...,"overlap_ns":...,"idle":...}, or null.
void write_step_period(JsonWriter& json, const std::optional<StepPeriod>& period);

}  // namespace bubblescope::traces
