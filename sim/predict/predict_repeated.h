// Predicts long steps that repeat themselves from short ones.
//
//   schedule -> find its cycle -> remove most cycles -> predict the short step
//            -> find its steady state -> extend the report by copies of one period
//
// The report is exactly that of the whole step: where that cannot be shown, the schedule comes back
// unchanged and the caller predicts the whole step.
#pragma once

#include <cstdint>
#include <variant>

#include "sim/analysis/choose_ranks.h"
#include "sim/predict/predict.h"

namespace bubblescope::inline sim {

/// How short the first try is, and how long the last one. For tests; the defaults suit every step.
struct ShortSteps {
  std::int64_t first_cycles = 2;
  std::int32_t first_microbatches = 8;  ///< the first cycles have at least so many
  /// The first short step must save at least this part of the micro-batches. All tries together
  /// may time at most `max_tried` of them: a step that never becomes steady takes so much longer.
  double min_saving = 0.3;
  double max_tried = 0.35;
};

/// Predicts the step of a schedule that has its moves already, with its complete report. Program
/// and Timeline hold only a part of the instructions: all that the report names, and all compute
/// ops of the chosen ranks. Dependencies, uncontended times and Timing are missing. A model's
/// layers must have been chosen (sim/predict/choose_layers.h).
///
/// Returns the schedule itself if this is not possible: if micro-batches, noise or contention make
/// ops differ, if more than the report is needed (sensitivity, arrivals, faults), or if no short
/// step becomes steady.
std::variant<Prediction, ValidSchedule> predict_repeated(ValidSchedule schedule,
                                                         const Config& config,
                                                         const ChooseRanks& choose_ranks,
                                                         const ShortSteps& limits = {});

}  // namespace bubblescope::inline sim
