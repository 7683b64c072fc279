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

/// A predicted training step. The report is complete, with links, noise and sensitivity.
struct Prediction {
  ValidSchedule schedule;  ///< with the ops of its moves
  Program program = {};
  Models models = {};
  Timing timing = {};  ///< with injected delays and slow ranks
  Timeline timeline = {};
  BubbleReport report = {};
  std::vector<Note> notes = {};  ///< in the order in which they concern the walk
};

/// Lowers a schedule. Throws Error (Fault::kProblem) with the cycle where it deadlocks.
Program lower_or_refuse(const ValidSchedule& schedule, const LowerOptions& options);

/// Predicts a step. Throws Error (Fault::kProblem) where the schedule deadlocks or an injected
/// fault keeps the step from ending, and Error where the Config does not fit the schedule.
Prediction predict(ValidSchedule schedule, const Config& config);

/// The same from a Program on, which has been lowered from the schedule by choose_lowering(). The
/// schedule has its moves already.
Prediction predict(ValidSchedule schedule, Program program, const Config& config);

}  // namespace bubblescope::inline sim
