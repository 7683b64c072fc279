// How much memory a micro-batch holds on a stage.
#pragma once

#include "exec/training/transformer.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// Between forward and input gradient.
Bytes held_bytes(const Activations& saved);

/// Between input gradient and weight gradient.
Bytes held_bytes(const WeightWork& work);

}  // namespace bubblescope
