// Warnings about a plan, on stderr: once per plan, not once per row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/analysis/plan.h"
#include "tools/flags/options.h"
#include "tools/plan/plan_options.h"
#include "tools/plan/what_if.h"
#include "traces/plans/plan_table.h"

namespace bubblescope::tools {

/// Reports the default numbers of --pp, -m, --vpp and --slices where none are given.
void report_defaults(const Axes& axes, const ShapeOptions& shape);
/// The same for a model, where all but --slices are swept.
void report_default_slices(const std::vector<std::string>& schedules, const ShapeOptions& shape);

/// Prints the warnings of `simulate` for all schedules that have a plan: full backwards that are
/// not the sum of split ones, schedules that never flush, and costs of ops that none of their steps
/// has. `options` are those of every plan, without its shape.
void warn_of_plans(const std::vector<Plan>& ranked, const PredictInputs& inputs);

/// Names what the predicted steps have that write_plan_config() does not write for Megatron-LM.
void note_unwritten_settings(const traces::TrainingSettings& training, const ModelOptions& model);

/// Warns if the plans were predicted for another runtime than that of the framework for which they
/// are written.
void warn_of_other_runtime(traces::Framework framework, const ModelOptions& model);

/// Notes what the sweep over a model's configurations leaves out and may be faster, except for the
/// flags of the question.
void note_untried(const std::vector<Plan>& ranked, const PredictInputs& inputs,
                  const PlanQuestion& question);

/// Where no outcome is a plan, says what the configuration that lacks the least memory needs: a
/// higher cap, or instead of `gpus` so many devices as hold it, a multiple of `multiple`.
void note_missing_memory(std::span<const Outcome> outcomes, std::int32_t gpus,
                         std::int64_t multiple);

/// Where no framework has a plan's schedule by name, returns why 'convert --to pytorch-csv' refuses
/// it; empty if it does not.
std::string find_pytorch_refusal(const Plan& plan, const PredictInputs& inputs);

}  // namespace bubblescope::tools
