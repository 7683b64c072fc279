// Parts of ops from a model: what computes, and which collectives ops wait for.
//
//   F  context attn attn_reduce dispatch mlp combine mlp_reduce
//   B  combine mlp mlp_w dispatch mlp_reduce attn attn_w context attn_reduce
//
// These are the parts of one layer, each after the one before it. Those ending in _w are weight
// gradients, for which no other part waits. Parts that a layer lacks are left out: dispatch and
// combine without experts, the rest without a group of several ranks. The two collectives around
// attention, or around the network, are one part after it.
//
// Before the first layer or after the last are what only some stages have: embedding and head,
// weights gathered and gradients reduced over data ranks, sends that block, and `rest`: what the
// host takes longer than the device, and gradients that a kernel of their own adds up. With full
// recomputation a layer's backward begins with its forward: recompute, and its collectives.
//
// A collective's part is what its runtime exposes. What a runtime hides within an op stays hidden,
// and the SMs that it takes count as compute. Beside the compute of a pair's other op, every
// collective takes the same share of the SMs.
#pragma once

#include "sim/model/model_step.h"
#include "sim/model/part_costs.h"

namespace bubblescope::inline sim {

/// The parts of all stages' F, I and B; W has only compute, and the rank's R is whole. The parts of
/// an op add up to its cost in `step`, to the nanosecond.
PartTable make_model_parts(const ModelOnDevices& on, const Schedule& schedule,
                           const ModelStep& step);

/// Parses the name of an order, a list of parts such as F.attn,B.mlp, or "series" for no
/// interleaving. Throws Error for other texts.
PartsOfModel parse_model_parts(const std::string& text);

}  // namespace bubblescope::inline sim
