// The numbers that the kernels between a layer's GEMMs read and write.
#pragma once

#include <cstdint>

#include "sim/model/layer_cost.h"
#include "sim/model/layer_timer.h"
#include "sim/model/transformer.h"

namespace bubblescope::inline sim {

/// The inner width of all networks that one token visits.
double inner_width(const Transformer& model, std::int64_t layer);
/// The same for those networks whose activation function is a kernel of its own.
double unfused_width(const ModelOnDevices& on, std::int64_t layer);

/// Widths of a token's queries, keys and values.
struct HeadWidths {
  double queries = 0;
  double keys = 0;
  double all = 0;
};
HeadWidths widths_of(const Transformer& model);

/// Numbers that are cast before 8-bit GEMMs: the inputs of F, and the gradients of outputs for I
/// and W. `inner` is the width of the networks whose activations a kernel of its own casts.
struct CastNumbers {
  MovedNumbers forward;
  MovedNumbers backward;
};
CastNumbers cast_numbers(const Transformer& model, std::int64_t layer, double inner);

/// Numbers moved by two norms (read and written), two residuals, and splitting and merging heads.
/// GPT style adds biases beside the GEMMs, and dropout with a one-byte mask in the residual's
/// kernel. Gated models add rotary positions and a fused kernel over three tensors.
MovedNumbers moved_forward(const Transformer& model, double inner);
/// Counts the numbers that gradients move: a norm's reads two tensors and writes one, a residual's
/// adds two, an activation's reads two and writes one, and a bias's is a sum.
MovedNumbers moved_backward(const Transformer& model, double inner);
/// Numbers that PyTorch's own kernels move beyond these. They convert queries and keys to 32 bits,
/// multiply them as complex numbers and convert them back, 10 numbers of 16 bits for every 2 of a
/// fused kernel; an activation and its product with the gate are a kernel each.
MovedNumbers moved_eagerly_forward(const Transformer& model, double inner);
MovedNumbers moved_eagerly_backward(const Transformer& model, double inner);
/// Numbers of two norms alone, read and written, and of the activation function alone.
MovedNumbers moved_by_norms(const Transformer& model);
MovedNumbers moved_by_activation(const Transformer& model, double inner);

}  // namespace bubblescope::inline sim
