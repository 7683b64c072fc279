// The assignment of layers to stages, in the configurations of training frameworks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/model/layer_layout.h"

namespace bubblescope::traces {

/// Megatron-LM's arguments for stages that are on `ranks` ranks in turn. Where its own rule gives
/// these stages they are only the ends and the number of stages per rank,
/// "--decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 8"; otherwise
/// "--pipeline-model-parallel-layout 'Et*3|...'". Empty for one stage per rank with as many layers
/// each. Throws Error (Fault::kProblem) for layouts that Megatron refuses.
std::string write_megatron_layers(const LayerLayout& layout, std::int32_t ranks);

/// torchtitan's keys of [parallelism], one line each, for stages that are on `ranks` ranks.
/// `stages_per_rank` is what its schedule has by default: 1, or 2 where it takes several. Where its
/// own rule gives these stages the keys are pipeline_parallel_first_stage_less_layers and its
/// siblings; otherwise module_fqns_per_model_part lists the modules of every stage. Throws Error
/// (Fault::kProblem) for layers that its models lack.
std::string write_torchtitan_layers(const LayerLayout& layout, std::int32_t ranks,
                                    std::int32_t stages_per_rank);

}  // namespace bubblescope::traces
