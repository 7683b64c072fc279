// Predicts from inputs: loads the schedule, calls predict() of the library and prints its notes.
#pragma once

#include <string>
#include <variant>

#include "sim/analysis/report.h"
#include "sim/ir/size_limits.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/predict.h"
#include "sim/predict/rank_loss.h"
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

/// Whether a word is a path (or "-") rather than a schedule's name.
bool is_schedule_file(const std::string& name_or_path);

/// Removes the flags that this schedule does not use: they are meant for the others.
ShapeOptions drop_unused_flags(ShapeOptions shape, const ScheduleDef& def);

/// Makes the request for a schedule's builder. Throws Error where --pp or -m is missing, or the
/// shape has more ops than `max_ops`.
ScheduleRequest make_request(const ScheduleDef& def, const PredictInputs& inputs,
                             std::int64_t max_ops = kMaxOps);

/// Whether the ops of a loaded schedule are priced from the inputs.
enum class CostUse : std::uint8_t { kPriced, kOrderOnly };

/// Builds the schedule of this name, or reads the file at this path ("-" is stdin); its schedule
/// may be illegal. A timeline's own times are never dropped silently: where ops are to be priced,
/// it is refused unless the flags name the costs. Throws Error when the name is unknown, the
/// shape is refused or the file cannot be read.
std::variant<ValidSchedule, InvalidSchedule> load_schedule(const std::string& name_or_path,
                                                           const PredictInputs& inputs,
                                                           CostUse use = CostUse::kPriced);

/// The same for callers that need a legal schedule. For others the grid is printed to stderr with
/// the culprit marked, and Error (Fault::kProblem) is thrown.
ValidSchedule load_valid_schedule(const std::string& name_or_path, const PredictInputs& inputs,
                                  CostUse use = CostUse::kPriced);

/// The schedule of one pipeline, before --lose makes another one of it.
ValidSchedule load_pipeline(const std::string& name_or_path, const PredictInputs& inputs,
                            CostUse use = CostUse::kPriced);

/// The job of all replicas without the rank that --lose names.
ValidSchedule lose_rank(const ValidSchedule& pipeline, const PredictInputs& inputs);

/// The cost of --lose; `rerouted` is what lose_rank() made of the pipeline.
LossReport report_loss(const std::string& name_or_path, const ValidSchedule& pipeline,
                       const ValidSchedule& rerouted, const PredictInputs& inputs);

/// Lowers a schedule. Where it deadlocks, the grid is printed to stderr with the culprit marked,
/// and Error (Fault::kProblem) is thrown.
Program lower_or_explain(const ValidSchedule& schedule, const LowerOptions& options);

/// Finds the costs and memory of a schedule's ops, and prints the notes on them.
Models load_models(const ValidSchedule& schedule, const PredictInputs& inputs);

/// Builds or loads the schedule and predicts its step. A deadlock is reported as by
/// lower_or_explain().
TimedStep predict(const std::string& name_or_path, const PredictInputs& inputs);

/// The same from a schedule on, which has its moves already.
TimedStep predict(ValidSchedule schedule, const PredictInputs& inputs);

}  // namespace bubblescope::tools
