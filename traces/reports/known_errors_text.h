// Writes known errors as a sentence.
#pragma once

#include <string>

#include "sim/analysis/plan.h"
#include "sim/model/known_errors.h"

namespace bubblescope::traces {

/// Writes a sentence such as "all 22 published runs of dense models on h100 took longer than
/// predicted, by 1 to 25 %". It explains why the predicted time may lie outside the expected range.
/// `no_run_had` is what the prediction has and none of these runs had, if anything.
std::string known_errors_text(const KnownErrors& errors, const std::string& no_run_had = {});

/// Names the schedule of a plan that no published run had, "the schedule zb-v"; empty if one had
/// it.
std::string find_unpublished(const Plan& plan, const KnownErrors& errors);

}  // namespace bubblescope::traces
