// Predicts a training step: the whole walk from a schedule to a report.
//
//   ValidSchedule -> apply moves -> lower -> Program
//                 -> price, inject faults, slow ranks down -> Timing
//                 -> simulate -> Timeline -> analyze -> BubbleReport
//
// Each value is made once, from the one before, and is part of the Prediction.
#pragma once

#include <vector>

#include "sim/analysis/report.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/timing.h"
#include "sim/predict/config.h"
#include "sim/predict/models.h"
#include "sim/predict/notes.h"

namespace bubblescope::inline sim {

/// The values that a prediction adds to a schedule and its Program.
struct PredictedStep {
  Models models = {};
  Timing timing = {};  ///< with injected delays and slow ranks
  Timeline timeline = {};
  BubbleReport report = {};  ///< as Config::detail asks; if full, with links, noise, sensitivity
  std::vector<Note> notes = {};  ///< in the order in which they concern the walk
};

/// A predicted training step.
struct Prediction : PredictedStep {
  ValidSchedule schedule;  ///< with the ops of its moves
  Program program = {};
};

/// Lowers a schedule. Throws Error (Fault::kProblem) with the cycle where it deadlocks.
Program lower_or_refuse(const ValidSchedule& schedule, const LowerOptions& options);

/// Predicts a step. Throws Error (Fault::kProblem) where the schedule deadlocks or an injected
/// fault keeps the step from ending, and Error where the Config does not fit the schedule.
Prediction predict(ValidSchedule schedule, const Config& config);

/// Predicts from a Program on, which choose_lowering() and lower() have made of the schedule; the
/// schedule has its moves already. A caller with many Configs for one Program keeps both, and calls
/// predict_step(). Arrivals and a policy change the Program: predict_step() throws Error for a
/// policy, and for arrivals that the Program does not wait for.
PredictedStep predict_step(const ValidSchedule& schedule, const Program& program,
                           const Config& config);
Prediction predict(ValidSchedule schedule, Program program, const Config& config);

}  // namespace bubblescope::inline sim
