// Chooses the source of a step's costs: a model, a cost file, a layout, or flags.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/ir/valid_schedule.h"
#include "sim/model/cost_model.h"
#include "sim/model/memory_model.h"
#include "tools/flags/options.h"
#include "tools/inputs/models.h"
#include "traces/costs/cost_file.h"

namespace bubblescope::tools {

/// Reads the files that flags name, each once, so that any of them can be stdin. `schedules` are
/// the names and files of the command's schedules. Throws Error where two inputs are stdin.
PredictOptions read_inputs(PredictOptions options, const std::vector<std::string>& schedules);

/// Throws Error where two flags set the times.
void expect_one_cost_source(const PredictOptions& options);

/// Returns the content of --costs.
CostTable cost_file_of(const CostOptions& options);

/// Returns the memory of the flags for any schedule of this shape. Throws Error for a --cap with
/// neither one entry nor one per rank.
MemoryModel make_uniform_memory(const Shape& shape, const MemoryOptions& options,
                                UniformCost::Per per = UniformCost::Per::kRank);

/// Returns the costs for a schedule that searches for an order; messages are priced without
/// contention. Empty where only the flags give times.
std::optional<CostModel> load_costs_before_order(const Shape& shape, const PredictOptions& options);

/// Returns the bytes of activations and states, which do not depend on the order.
MemoryModel load_memory_before_order(const Shape& shape, const PredictOptions& options);

/// Loads costs and memory from the model, from the cost file, which is read once, or from the
/// flags, spread over the schedule's stages.
Models load_models(const ValidSchedule& schedule, const PredictOptions& options);

/// Says in words where the durations come from.
std::string costs_text(const Models& models, const PredictOptions& options);

}  // namespace bubblescope::tools
