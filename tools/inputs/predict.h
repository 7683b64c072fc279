// The walk of one prediction: name or file -> Schedule -> Program -> Timeline -> BubbleReport.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/analysis/report.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/timing.h"
#include "tools/flags/options.h"
#include "tools/inputs/cost_sources.h"
#include "tools/inputs/models.h"
#include "traces/files/format.h"

namespace bubblescope::tools {

/// One training step, predicted: each value is made once, from the one before.
struct TimedStep {
  ValidSchedule schedule;
  Program program = {};
  Models models = {};
  Timing timing = {};  ///< with injected delays
  Timeline timeline = {};
  BubbleReport report = {};
  traces::MadeWith made = {};

  traces::StepRecord record() const { return {schedule, program, timeline, report, made}; }
};

/// Whether a word is a path (or "-") rather than a schedule's name.
bool is_schedule_file(const std::string& name_or_path);

/// Removes the flags that this schedule does not use: they are meant for the others.
PredictOptions drop_unused_flags(PredictOptions options, const ScheduleDef& def);

/// Makes the request for a schedule's builder. Throws Error where --pp or -m is missing, or the
/// shape has more ops than fit.
ScheduleRequest make_request(const ScheduleDef& def, const PredictOptions& options);

/// Whether the ops of a loaded schedule are priced from the options.
enum class CostUse : std::uint8_t { kPriced, kOrderOnly };

/// Builds the schedule of this name, or reads the file at this path ("-" is stdin); its schedule
/// may be illegal. A timeline's own times are never dropped silently: where ops are to be priced,
/// it is refused unless the options name the costs. Throws Error when the name is unknown, the
/// shape is refused or the file cannot be read.
std::variant<ValidSchedule, InvalidSchedule> load_schedule(const std::string& name_or_path,
                                                           const PredictOptions& options,
                                                           CostUse use = CostUse::kPriced);

/// The same for callers that need a legal schedule. For others the grid is printed to stderr with
/// the culprit marked, and Error (Fault::kProblem) is thrown.
ValidSchedule load_valid_schedule(const std::string& name_or_path, const PredictOptions& options,
                                  CostUse use = CostUse::kPriced);

/// Lowers a schedule. Where it deadlocks, the grid is printed to stderr with the culprit marked,
/// and Error (Fault::kProblem) is thrown.
Program lower_or_explain(const ValidSchedule& schedule, const LowerOptions& options);

/// Builds or loads, lowers, simulates and analyzes.
TimedStep predict(const std::string& name_or_path, const PredictOptions& options);

/// The same from a schedule on.
TimedStep predict(ValidSchedule schedule, const PredictOptions& options);

}  // namespace bubblescope::tools
