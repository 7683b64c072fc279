// --lose: the job that continues without a rank, and what that costs.
#pragma once

#include <string>

#include "sim/ir/valid_schedule.h"
#include "sim/predict/rank_loss.h"
#include "tools/inputs/inputs.h"

namespace bubblescope::tools {

/// The job of all replicas without the rank that --lose names.
ValidSchedule reroute_pipeline(const ValidSchedule& pipeline, const PredictInputs& inputs);

/// The cost of --lose; `rerouted` is what reroute_pipeline() made of the pipeline.
LossReport report_lost_rank(const std::string& name_or_path, const ValidSchedule& pipeline,
                            const ValidSchedule& rerouted, const PredictInputs& inputs);

}  // namespace bubblescope::tools
