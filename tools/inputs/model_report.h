// Reports a model's stages and ranks: layers, and memory by category.
//
//   layers per stage  9 8 8 7; embedding on the first, head on the last
//
//   GiB     weights  gradients  optimizer  buffers  context  activations  peak  of 78.6
//   rank 0     4.32       8.64       25.9     0.10     2.00         20.0  61.0     78 %
//   with 32-bit gradients; 79.1 GiB of the device for a program, 0.50 GiB of it reserved
//
// "activations" are those at the rank's peak; the other parts are held during the whole step.
#pragma once

#include <map>
#include <string>

#include "sim/analysis/report.h"
#include "sim/predict/models.h"
#include "tools/flags/model_options.h"
#include "traces/drawings/drawing.h"
#include "traces/json/json_writer.h"

namespace bubblescope::tools {

/// Writes the table above.
std::string write_model_text(const PlacedModel& placed, const BubbleReport& report,
                             const traces::DrawOptions& draw = {});

/// Writes `"model":{"name":...,"layers_per_stage":[...],"gpu_memory_bytes":...,
/// "memory_bytes":[{"weights":...}]}`, and the members that say how well the devices are used.
void write_model_json(traces::JsonWriter& json, const PlacedModel& placed,
                      const BubbleReport& report);

/// Names the ranks that do not fit the device, how much they lack, and what would reduce it; empty
/// if all fit.
std::string describe_memory_problem(const PlacedModel& placed, const BubbleReport& report);

/// Prints that warning to stderr, after the assumptions if they are asked for, and which gradients
/// are assumed against Megatron-LM's default.
void report_model_notes(const PlacedModel& placed, const BubbleReport& report,
                        const ModelOptions& options);

/// Returns the numbers of a model that --fail-if can name besides those of its report: "mfu", and
/// "head_room_bytes", which is negative if the model does not fit.
std::map<std::string, double> model_metrics(const PlacedModel& placed, const BubbleReport& report);

}  // namespace bubblescope::tools
