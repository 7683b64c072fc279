// The walk of one prediction: name or file -> Schedule -> Program -> Timeline -> BubbleReport.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/report.h"
#include "sim/ir/schedule.h"
#include "sim/ir/timeline.h"
#include "sim/model/traffic.h"
#include "tools/models.h"
#include "tools/options.h"
#include "traces/format.h"

namespace bubblescope {

/// One step of training, predicted: each value made once, from the one before.
struct Step {
  Schedule schedule;
  Program program;
  Models models;
  std::vector<Nanos> durations;    ///< with the injected delays; of messages, as if alone
  std::optional<Traffic> traffic;  ///< where messages share links, or ops slow each other
  Timeline timeline;
  BubbleReport report;
  MadeWith made;

  Recording recording() const { return {schedule, program, timeline, report, made}; }
};

/// Whether a word is a path (or "-") rather than a schedule's name.
bool is_schedule_file(const std::string& name_or_path);

/// A flag that a schedule has no use for is meant for the others: the options without it.
PredictOptions fitted(PredictOptions options, const ScheduleDef& def);

/// What a schedule's builder is given. Throws Error where --pp or -m is missing, or the shape has
/// more ops than fit.
ScheduleRequest request_of(const ScheduleDef& def, const PredictOptions& options);

/// What the memory flags say for any schedule of this shape. Throws Error for a --cap that has
/// neither one entry nor one per rank.
MemoryModel uniform_memory(const Shape& shape, const MemoryOptions& options,
                           UniformCost::Per per = UniformCost::Per::kRank);

/// Builds the schedule of this name, or reads the file of this path ("-" is stdin).
/// Throws Error when the name is unknown, the shape is refused or the file cannot be read;
/// what a file says is not validated here.
Schedule load_schedule(const std::string& name_or_path, const PredictOptions& options);

/// From the model, the cost file, which is read once, or from the flags spread over the schedule's
/// stages.
Models load_models(const Schedule& schedule, const PredictOptions& options);

/// What shares links, and what slows what; nothing where every instruction takes its time whatever
/// the others do.
std::optional<Traffic> find_traffic(const Program& program, const Models& models,
                                    const std::vector<Nanos>& durations);

/// Lowers a legal schedule. Where it is not legal, or deadlocks, the grid goes to stderr with the
/// culprit marked, and Error (Fault::kProblem) is thrown.
Program lower_or_explain(const Schedule& schedule, const LowerOptions& options);

/// The whole walk.
Step predict(const std::string& name_or_path, const PredictOptions& options);

/// The walk from a schedule on.
Step predict(Schedule schedule, const PredictOptions& options);

}  // namespace bubblescope
