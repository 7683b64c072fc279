// The work of a layer's forward that its backward repeats.
#pragma once

#include <cstdint>

#include "sim/model/layer_cost.h"

namespace bubblescope::inline sim {

/// The work that a layer recomputes, as Parallelism::recompute and Parallelism::modules say, in
/// nanoseconds. `forward` is all of its F, with the collectives that it waits for.
double estimate_recompute_time(const ModelOnDevices& on, std::int64_t layer, double forward);

/// The same model whose layers save all that their backward needs.
ModelOnDevices without_recomputation(ModelOnDevices on);

}  // namespace bubblescope::inline sim
