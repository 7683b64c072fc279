// Predicts from inputs: loads the schedule, calls predict() of the library and prints its notes.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/analysis/report.h"
#include "sim/ir/program.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/timing.h"
#include "sim/predict/models.h"
#include "sim/predict/notes.h"
#include "sim/predict/predict_repeated.h"
#include "tools/inputs/inputs.h"
#include "traces/files/format.h"

namespace bubblescope::tools {

/// One training step, predicted or measured, and what an export says of how it was made.
struct TimedStep {
  ValidSchedule schedule;
  Program program = {};
  Models models = {};
  Timing timing = {};  ///< with injected delays
  Timeline timeline = {};
  BubbleReport report = {};
  traces::MadeWith made = {};
  std::optional<traces::JobSummary> job = {};  ///< of all measured steps, if it stands for them
  bool is_excerpt = false;  ///< program and timeline hold only what the report names

  traces::StepRecord record() const { return {schedule, program, timeline, report, made, job}; }
};

/// Finds the costs and memory of a schedule's ops, and prints the notes on them.
Models load_models(const ValidSchedule& schedule, const PredictInputs& inputs);

/// Builds or loads the schedule and predicts its step. A deadlock is reported as by
/// lower_or_explain(). Notes that were `noted` before, on another schedule, are not printed again.
TimedStep predict_timed_step(const std::string& name_or_path, const PredictInputs& inputs,
                             std::span<const Note> noted = {});

/// The same from a schedule on, which has its moves already.
TimedStep predict_timed_step(ValidSchedule schedule, const PredictInputs& inputs,
                             std::span<const Note> noted = {});

/// The same as predict_timed_step() for callers that show the report and draw these ranks: of a
/// long step that repeats itself, program and timeline hold no more than that.
TimedStep predict_report(const std::string& name_or_path, const PredictInputs& inputs,
                         const ChooseRanks& choose_ranks, std::span<const Note> noted = {});

/// The same from a schedule on, which has its moves already.
TimedStep predict_report(ValidSchedule schedule, const PredictInputs& inputs,
                         const ChooseRanks& choose_ranks, std::span<const Note> noted = {});

/// The whole of a step that was predicted from these inputs. Prints no notes again.
TimedStep complete_excerpt(const TimedStep& excerpt, const PredictInputs& inputs);

}  // namespace bubblescope::tools
