// Predicts plain steps (sim/analysis/plain_step.h) without a Program: briefly by the thousands, or
// one of millions of ops with its complete report.
#pragma once

#include <optional>
#include <variant>

#include "sim/analysis/choose_ranks.h"
#include "sim/analysis/report.h"
#include "sim/ir/schedule.h"
#include "sim/predict/config.h"
#include "sim/predict/predict.h"

namespace bubblescope::inline sim {

/// The report of predict_step() under a Config with a brief detail, from an order that need not be
/// validated. nullopt where the step is not plain, not valid, or costs are not the same for all
/// micro-batches; predict_step() then finds the report, or says what is wrong.
std::optional<BubbleReport> predict_plain_step(const Schedule& schedule, const Config& config);

/// Predicts a step with its complete report, but for slack. The schedule has its moves already, and
/// a model's layers have been chosen, as for predict_repeated(). Program and Timeline hold only the
/// part of the step that PlainDetails names; Timing is missing. Returns the schedule itself where
/// the step is not plain or more is needed; micro-batches may take different times.
std::variant<Prediction, ValidSchedule> predict_plain_report(ValidSchedule schedule,
                                                             const Config& config,
                                                             const ChooseRanks& choose_ranks);

}  // namespace bubblescope::inline sim
