// Predicts plain steps (sim/analysis/plain_step.h) by the thousands.
#pragma once

#include <optional>

#include "sim/analysis/report.h"
#include "sim/ir/schedule.h"
#include "sim/predict/config.h"

namespace bubblescope::inline sim {

/// The report of predict_step() under a Config with a brief detail, from an order that need not be
/// validated. nullopt where the step is not plain, not valid, or costs are not the same for all
/// micro-batches; predict_step() then finds the report, or says what is wrong.
std::optional<BubbleReport> predict_plain_step(const Schedule& schedule, const Config& config);

}  // namespace bubblescope::inline sim
