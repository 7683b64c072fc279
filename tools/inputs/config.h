// Turns options into the Config of a prediction. The files that flags name are read here, each
// once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/predict/config.h"
#include "sim/predict/models.h"
#include "tools/flags/options.h"

namespace bubblescope::tools {

/// Reads the files that flags name, so that any of them can be stdin. `schedules` are the names and
/// files of the command's schedules. Throws Error where two inputs are stdin.
PredictOptions read_inputs(PredictOptions options, const std::vector<std::string>& schedules);

/// Throws Error where two flags set the times.
void expect_one_cost_source(const PredictOptions& options);

/// Returns the content of --costs.
CostTable cost_file_of(const CostOptions& options);

/// Returns the noise of --costs, once it is read; empty if it has none, or flags replace it.
std::optional<Noise> noise_of_costs(const PredictOptions& options);

/// Returns the model of the flags, with their recomputation and layout. Throws Error with the
/// nearest known name, or where a flag does not apply to the model.
ModelOnDevices resolve_model(const PredictOptions& options);

/// Sets what the flags of the step's execution change in a model.
void set_execution(ModelOnDevices& on, const PredictOptions& options);

/// Returns the memory of the flags, in the unit of --costs-per.
UniformMemory choose_memory(const PredictOptions& options);

/// Returns the moves of the flags. With a model there is no recomputation among them, because the
/// model's backwards include it.
Moves choose_moves(const PredictOptions& options);

/// Returns everything that a prediction depends on. Throws Error where flags contradict each other.
Config make_config(const PredictOptions& options);

/// Returns the lowering of the flags, and with a model that of its step's end.
LowerOptions choose_lowering(const Schedule& schedule, const PredictOptions& options);

/// The conditions of a step that are not as usual, by field, each as its flag takes it.
std::map<std::string, std::string> list_conditions(const PredictOptions& options);

/// Says in words where the durations come from.
std::string costs_text(const Models& models, const PredictOptions& options);

}  // namespace bubblescope::tools
