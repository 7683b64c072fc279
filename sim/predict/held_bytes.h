// The bytes of what ranks hold for a time beside activations: outputs until their sends end, and
// gathered weights (sim/analysis/held_buffers.h).
#pragma once

#include "sim/predict/models.h"

namespace bubblescope::inline sim {

/// Adds to the memory of `models` what the Config asks to count, as far as its costs know bytes.
Models with_held_bytes(Models models, const Schedule& schedule, const Config& config);

}  // namespace bubblescope::inline sim
