// How much memory a micro-batch holds on a stage.
#pragma once

#include <array>

#include "exec/training/transformer.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// What a forward keeps until its backward. Where everything will be made again there is only
/// `input`; where attention will be, `saved` is without it.
struct Kept {
  Matrix input;
  Activations saved;
};

/// All that a block's forward keeps.
inline constexpr std::array<Matrix BlockActivations::*, 9> kBlockMatrices{
    &BlockActivations::input,         &BlockActivations::normed,
    &BlockActivations::qkv,           &BlockActivations::attention,
    &BlockActivations::mixed,         &BlockActivations::middle,
    &BlockActivations::middle_normed, &BlockActivations::before_gelu,
    &BlockActivations::after_gelu};

/// All that the last stage's head keeps.
inline constexpr std::array<Matrix Activations::*, 3> kHeadMatrices{
    &Activations::head_input, &Activations::head_normed, &Activations::probabilities};

/// Between forward and input gradient.
Bytes held_bytes(const Activations& saved);
Bytes held_bytes(const Kept& kept);

/// Between input gradient and weight gradient.
Bytes held_bytes(const WeightWork& work);

}  // namespace bubblescope
