// Sets of modules among which a plan chooses what selective recomputation computes again.
//
//   Llama 3 8B, tensor ranks with sequence parallelism
//     layernorm                the least time
//     mlp
//     layernorm,mlp
//     core_attn,layernorm,mlp  the least memory
#pragma once

#include <vector>

#include "sim/model/layer_cost.h"
#include "sim/model/recompute_modules.h"

namespace bubblescope::inline sim {

/// Sets of the modules that a model has, by the time that recomputing them takes: each one saves
/// less memory than all before it. Sets that take more time than another and save no less memory
/// are left out. Never holds the empty set.
std::vector<RecomputeModules> list_module_sets(const ModelOnDevices& on);

}  // namespace bubblescope::inline sim
