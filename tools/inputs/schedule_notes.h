// Notes (to stderr) on a schedule that may not be the intended one.
#pragma once

#include <string>
#include <vector>

#include "sim/model/cost_table.h"
#include "sim/model/layer_cost.h"
#include "sim/model/schedule_def.h"
#include "tools/flags/options.h"

namespace bubblescope::tools {

/// Returns other schedules whose name or alias differs from `name` only in hyphens, such as zb-1p
/// for ZB1P.
std::vector<std::string> find_similar_names(const std::string& name);

/// Prints "ZB1P is interleaved-zb; zb-1p is another schedule" where there are such names.
void note_similar_names(const std::string& name);

/// Return the default numbers of chunks and slices. With --profile a schedule has one by default,
/// as in the framework.
std::int32_t default_chunks(const ScheduleDef& def, const ShapeOptions& given);
std::int32_t default_slices(const ScheduleDef& def, const ShapeOptions& given);

/// Reports the sizes that were chosen for a schedule that would be another one with 1 chunk or
/// slice.
void note_default_sizes(const ScheduleDef& def, const ShapeOptions& given);

/// Says where 1F1B may have less bubble than a schedule that is chosen for its small one. The
/// request must be one that the schedule accepts.
void note_larger_bubble(const ScheduleDef& def, const ScheduleRequest& request);

/// Says where a last group of micro-batches delays every rank, and which groups do not. The request
/// must be one that the schedule accepts.
void note_short_group(const ScheduleDef& def, const ScheduleRequest& request);

/// Says where a schedule is searched for under the memory of a model's devices, because `memory`
/// has no cap.
void note_device_cap(const ScheduleDef& def, const ScheduleRequest& request,
                     const UniformMemory& memory);

/// Says where the ranks of a file have different numbers of stages, and times are given per rank.
void note_uneven_ranks(const Schedule& schedule, const PredictOptions& options);

/// Says where a cost file gives the last stage messages to a next one.
void note_last_messages(const CostTable& table, const std::string& file);

/// Says that the backwards of a framework recompute within themselves, where R's are ops of their
/// own, and how to give such a backward.
void note_recompute_order(const PredictOptions& options);

/// Says where a schedule splits an output layer that takes no time.
void note_output_layer(const ScheduleDef& def, const PredictOptions& options);

}  // namespace bubblescope::tools
