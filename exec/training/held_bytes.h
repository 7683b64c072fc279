// The memory that a micro-batch holds on a stage.
#pragma once

#include <array>

#include "exec/training/transformer.h"
#include "sim/ir/units.h"

namespace bubblescope::exec {

/// The activations that a forward saves for its backward. With full recomputation only `input` is
/// set; with selective recomputation `saved` lacks attention.
struct SavedForward {
  Matrix input;
  Activations saved;
};

/// All matrices that the forward of a block saves.
inline constexpr std::array<Matrix BlockActivations::*, 9> kBlockMatrices{
    &BlockActivations::input,         &BlockActivations::normed,
    &BlockActivations::qkv,           &BlockActivations::attention,
    &BlockActivations::mixed,         &BlockActivations::middle,
    &BlockActivations::middle_normed, &BlockActivations::gelu_input,
    &BlockActivations::gelu_output};

/// All matrices that the head of the last stage saves.
inline constexpr std::array<Matrix Activations::*, 3> kHeadMatrices{
    &Activations::head_input, &Activations::head_normed, &Activations::probabilities};

/// Return the bytes that are held between the forward and the input gradient.
Bytes held_bytes(const Activations& saved);
Bytes held_bytes(const SavedForward& kept);

/// Returns the bytes that are held between the input gradient and the weight gradient.
Bytes held_bytes(const WeightWork& work);

}  // namespace bubblescope::exec
