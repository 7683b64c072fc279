// The walk of one prediction: name or file -> Schedule -> Program -> Timeline -> BubbleReport.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/analysis/report.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/traffic.h"
#include "tools/cost_sources.h"
#include "tools/models.h"
#include "tools/options.h"
#include "traces/format.h"

namespace bubblescope {

/// One step of training, predicted: each value made once, from the one before.
struct Step {
  ValidSchedule schedule;
  Program program = {};
  Models models = {};
  std::vector<Nanos> durations = {};    ///< with the injected delays; of messages, as if alone
  std::optional<Traffic> traffic = {};  ///< where messages share links, or ops slow each other
  Timeline timeline = {};
  BubbleReport report = {};
  MadeWith made = {};

  Recording recording() const { return {schedule, program, timeline, report, made}; }
};

/// Whether a word is a path (or "-") rather than a schedule's name.
bool is_schedule_file(const std::string& name_or_path);

/// A flag that a schedule has no use for is meant for the others: the options without it.
PredictOptions fitted(PredictOptions options, const ScheduleDef& def);

/// What a schedule's builder is given. Throws Error where --pp or -m is missing, or the shape has
/// more ops than fit.
ScheduleRequest request_of(const ScheduleDef& def, const PredictOptions& options);

/// Whether the ops of a loaded schedule will be given durations from the options.
enum class CostUse : std::uint8_t { kPriced, kOrderOnly };

/// Builds the schedule of this name, or reads the file of this path ("-" is stdin), whose schedule
/// may not be legal. A timeline's own times are never dropped silently: where ops are to be priced,
/// it is refused unless the options name the costs.
/// Throws Error when the name is unknown, the shape is refused or the file cannot be read.
std::variant<ValidSchedule, InvalidSchedule> load_schedule(const std::string& name_or_path,
                                                           const PredictOptions& options,
                                                           CostUse use = CostUse::kPriced);

/// The same for those who need a legal one. For others the grid goes to stderr with the culprit
/// marked, and Error (Fault::kProblem) is thrown.
ValidSchedule load_valid_schedule(const std::string& name_or_path, const PredictOptions& options,
                                  CostUse use = CostUse::kPriced);

/// What shares links, and what slows what; nothing where every instruction takes its time whatever
/// the others do.
std::optional<Traffic> find_traffic(const Program& program, const Models& models,
                                    const std::vector<Nanos>& durations);

/// Where the schedule deadlocks, the grid goes to stderr with the culprit marked, and Error
/// (Fault::kProblem) is thrown.
Program lower_or_explain(const ValidSchedule& schedule, const LowerOptions& options);

/// The whole walk.
Step predict(const std::string& name_or_path, const PredictOptions& options);

/// The walk from a schedule on.
Step predict(ValidSchedule schedule, const PredictOptions& options);

}  // namespace bubblescope
