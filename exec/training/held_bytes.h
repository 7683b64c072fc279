// How much memory a micro-batch holds on a stage.
#pragma once

#include "exec/training/transformer.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// What a forward keeps until its backward. Where everything will be made again there is only
/// `input`; where attention will be, `saved` is without it.
struct Kept {
  Matrix input;
  Activations saved;
};

/// Between forward and input gradient.
Bytes held_bytes(const Activations& saved);
Bytes held_bytes(const Kept& kept);

/// Between input gradient and weight gradient.
Bytes held_bytes(const WeightWork& work);

}  // namespace bubblescope
