// The GEMMs of a layer's modules.
#pragma once

#include <cstdint>

#include "sim/model/layer_cost.h"
#include "sim/model/layer_timer.h"

namespace bubblescope::inline sim {

/// Returns the times of the GEMMs of latent attention that give queries, keys and values their full
/// size.
PhaseTimes up_projection_times(const ModelOnDevices& on, const LayerTimer& timer);
/// Returns the times of the GEMMs around the core of attention.
PhaseTimes attention_gemm_times(const ModelOnDevices& on, const LayerTimer& timer);
/// Returns the times of the GEMMs of a feed-forward network that has this inner width on each
/// tensor rank.
PhaseTimes network_gemm_times(const ModelOnDevices& on, const LayerTimer& timer, double width);
/// F of the last GEMM of the routed experts that a rank holds.
double expert_output_time(const ModelOnDevices& on, const LayerTimer& timer);
/// Returns the times of all GEMMs of a layer.
PhaseTimes layer_gemm_times(const ModelOnDevices& on, const LayerTimer& timer, std::int64_t layer);

}  // namespace bubblescope::inline sim
